#!/bin/sh
# The checks of a change: what they print goes to the agent if they are red.
if ! grep -qs 'log in' login.txt; then
  echo "login.txt does not say how to log in"
  exit 1
fi
