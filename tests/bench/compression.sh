#!/usr/bin/env bash
# What compressed gradients are worth: tests/bench/compression.sh DTRAIN. Trains ResNet-20 on CIFAR-10 with each compression
# on machines that are network namespaces, whose links tc shapes, and prints a table in Markdown: bytes, time, accuracy.
# DTRAIN_TEST_DATA: the folder that holds cifar-10-batches-bin/; MACHINES (4), RATE (100mbit), EPOCHS (4), EXAMPLES (10000)
# of an epoch, THRESHOLD (0.5) of 2bit. It is tests/hosts/run.sh with the suite beside this file, and needs what that needs.
set -euo pipefail
DTRAIN_HOSTS_SUITES=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
: "${DTRAIN_TEST_DATA:?the folder with cifar-10-batches-bin/}"
export DTRAIN_HOSTS_SUITES DTRAIN_LAB_MACHINES=${MACHINES:-4}
exec bash "$DTRAIN_HOSTS_SUITES/../hosts/run.sh" "${1:?the program}" compression
