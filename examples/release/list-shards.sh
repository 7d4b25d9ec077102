#!/bin/sh
# The slow tests are known only now: one job for each of these.
echo 'shards:=["import", "upgrade"]' >>"$HEADWAY_OUTPUTS"
