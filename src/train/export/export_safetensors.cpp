#include <dtrain/train/export.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/safetensors.hpp"

namespace dtrain::train {

std::vector<Path> export_safetensors(const Checkpoint& checkpoint, const Path& file) {
  const std::vector<NamedTensor> tensors = weight_tensors(checkpoint.graph, checkpoint.state);
  const Json metadata = Json::object({{"format", "pt"},  // what PyTorch's readers ask for: plain arrays
                                      {"network", checkpoint.graph.name},
                                      {"preprocessing", checkpoint.job.preprocessing.dump()}});
  make_folder(file.parent_path());
  AtomicFile out(file);
  write_safetensors(out, safetensors_header(tensors, metadata), tensors);
  out.commit();
  return {file};
}

}  // namespace dtrain::train
