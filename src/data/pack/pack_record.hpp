// PREFIX.pack.json: what a run of data pack set out to do and which of its files are finished.
#pragma once

#include <optional>

#include <dtrain/data/pack.hpp>

#include "pictures.hpp"

namespace dtrain::data {

struct FinishedShard {
  PackResult::File file;
  std::vector<PackProblem> problems;
};

class PackJournal {
 public:
  // The plan is a hash over options and pictures (names, labels, sizes, times of change): another plan begins anew, and
  // so do other names of classes. The options say a train_ratio.
  PackJournal(const PackOptions& options, const Pictures& pictures);

  // Writes the plan, unless it is there.
  void begin() const;
  // Something of this very plan was done before.
  bool takes_up() const { return takes_up_; }
  // Record files that a run with this prefix made before, by whatever plan, and that are still there.
  const std::vector<Path>& made_before() const { return made_before_; }
  // What an earlier run says of the file, if it is there with that many bytes.
  std::optional<FinishedShard> finished(const Path& rec) const;
  void add(const FinishedShard& shard);

 private:
  void read();
  void note_made(const std::string& name);
  void write() const;

  Path path_;
  std::string plan_;
  std::vector<std::string> classes_;
  bool takes_up_ = false;
  std::vector<FinishedShard> finished_;
  std::vector<Path> made_before_;
};

}  // namespace dtrain::data
