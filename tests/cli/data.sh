#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run data prepare shapes --out d --train-count 40 --val-count 20
check "prepare succeeds" exits 0
check "prepare answers the files with their records" answers "d/shapes_train.rec  40 records"
check "prepare wrote the index" exists d/shapes_val.idx
run data prepare shapes --out d --train-count 40 --val-count 20
check "prepare can be run again" says "already complete"
run data prepare shapes --out e --train-count 40 --val-count 20
check "prepare draws the same images again" cmp -s d/shapes_train.rec e/shapes_train.rec
run data prepare shapes --out f --train-count 40 --val-count 20 --seed 2
check "another seed draws other images" bash -c '! cmp -s d/shapes_train.rec f/shapes_train.rec'
for encoding in zstd png jpeg; do
  run data prepare shapes --out "$encoding" --train-count 20 --val-count 10 --encoding $encoding
  run data ls $encoding/shapes_train.rec
  check "--encoding $encoding stores $encoding" answers "encoding $encoding: 20"
done
run data ls d/shapes_train.rec
check "ls counts the records" answers "d/shapes_train.rec: 40 records"
check "ls shows the size of an image" answers "first image: 3x32x32"
check "ls shows the classes" answers_line '^class +9 +4  #+$'
run data verify d/shapes_train.rec
check "verify says good" answers "40 records, all good"
run data bench d/shapes_train.rec --seconds 1 --data-nthreads 1
check "bench answers a rate" answers_line '^[0-9]+ samples/sec on 1 threads'
run data prepare shape --out d
check "an unknown set is a usage error" exits 2
check "an unknown set gets advice" says shapes
run data prepare --out d
check "a missing name is a usage error" says "data prepare: NAME is missing"
run data prepare cifar10 --from nowhere --out d
check "a folder without the files is a failure" exits 1
check "a folder without the files is named" says nowhere
run data prepare mnist --from http://127.0.0.1:9/ --out d
check "a server that is not there exits 4" exits 4
check "nothing half done is left" missing d/mnist_train.rec

finish
