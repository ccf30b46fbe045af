// Random images as a record file in a temporary folder, so that a benchmark goes through the same loader as training.
#pragma once

#include <dtrain/base/files.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::config {

// Made on construction, removed with all its content on destruction.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

// Random labels teach nothing: a learning rate that moves weights could only end in a loss that is not finite.
inline constexpr double kHarmlessRate = 1e-9;

// In a folder that all machines of a job see; made once, for a job that goes on under another coordinator too.
Path shared_synthetic_records(const Path& folder, const nn::Shape& image, int classes, int batch);

class SyntheticData {
 public:
  // A whole number of batches: one, or several that hold at most 16 MiB together.
  SyntheticData(const nn::Shape& image, int classes, int batch);
  Path records() const { return folder_.path() / "synthetic.rec"; }
  int batches() const { return batches_; }

 private:
  TemporaryFolder folder_;
  int batches_ = 1;
};

}  // namespace dtrain::config
