#!/bin/sh
# Has something to complain about; the workflow tolerates that.
echo "build.sh:5: a comment would help"
exit 1
