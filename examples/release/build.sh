#!/bin/sh
# Packs the sources, and says which bytes it made.
set -eu
mkdir -p dist
printf 'version %s\n' "$1" >dist/VERSION
tar -cf dist/app.tar -C dist VERSION
sum=$(sha256sum dist/app.tar | cut -d' ' -f1)
echo "sha256=$sum" >>"$HEADWAY_OUTPUTS"
echo "built dist/app.tar, $sum"
