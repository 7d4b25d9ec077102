#!/bin/sh
echo "$1" >>notices
