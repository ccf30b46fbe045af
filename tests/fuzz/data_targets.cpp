#include "fuzz.hpp"

namespace dtrain::fuzz {

std::vector<Target> data_targets(const Path& folder) {
  std::vector<Target> all = text_targets();
  for (auto& more : {answer_targets(), image_targets(), record_targets(folder), archive_targets(folder)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace dtrain::fuzz
