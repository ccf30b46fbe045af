#include <dtrain/train/checkpoint.hpp>

#include "far_checkpoint.hpp"
#include "manifest.hpp"

namespace dtrain::train {

// The new manifest takes the place of the old one at once: a reader finds one of the two, and both describe the same
// tensors.
void save_evaluation(const CheckpointName& name, const BestEpoch& best, const SharedStore& store) {
  const Path file = name.stem() + ".json";
  const auto present = read_manifest(file, store);
  const auto text = present ? with_evaluation(*present, file.string(), best) : std::nullopt;
  if (!text) return;
  if (is_far(file)) return replace_far(file, *text, store);
  write_file_atomic(file, *text);
}

}  // namespace dtrain::train
