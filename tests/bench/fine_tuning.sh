#!/usr/bin/env bash
# What pretrained weights are worth: tests/bench/fine_tuning.sh [PAIR...]. For each pair of CIFAR-10's classes, such as
# 8,9, trains ResNet-20 on the other eight, and then on 50 pictures of each of the two: from random weights, from those
# weights with all layers learning, and with the last one alone. Prints the accuracy on the 2,000 test pictures.
# DTRAIN: the program; DTRAIN_TEST_DATA: the folder that holds cifar-10-batches-bin/; SEEDS: how many (3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dtrain=$(realpath "${DTRAIN:-build/release/dtrain}")
data=$(realpath "${DTRAIN_TEST_DATA:?the folder with cifar-10-batches-bin/}")
seeds=${SEEDS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

