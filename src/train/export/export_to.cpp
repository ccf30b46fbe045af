#include <dtrain/base/files.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint/far_checkpoint.hpp"

namespace dtrain::train {
std::vector<Path> export_to(const Path& place, const std::function<std::vector<Path>(const Path&)>& write,
                            const SharedStore& store) {
  if (!is_far(place)) return write(place);
  const ScratchFolder folder("dtrain-export");
  const SharedStore used = store ? store : std::make_shared<net::ObjectStore>();
  std::vector<Path> sent;
  for (const Path& file : write(folder.path() / place.filename())) {
    sent.push_back(place.parent_path() / file.filename());
    data::copy_files(*used, {.from = file.string(), .to = sent.back().string()});
  }
  return sent;
}

}  // namespace dtrain::train
