// PREFIX.pack.json: what a run of data pack set out to do and which of its files are finished.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <dtrain/base/json.hpp>
#include <dtrain/data/pack.hpp>

#include "pictures.hpp"

namespace dtrain::data {

struct FinishedShard {
  PackResult::File file;
  std::vector<PackProblem> problems;
};

// Files of an earlier set with their sizes, and the names of its classes, which may differ from those of the plan.
// While this plan replaces such files, and where that was interrupted, class_names() finds the names of the others
// here.
struct EarlierSet {
  Json classes;
  std::map<std::string, std::uint64_t> files;  // bytes by name
};

class PackJournal {
 public:
  // The plan is a hash over options and pictures (names, labels, sizes, times of change): another plan begins anew, and
  // so do other names of classes. By force also a plan begins anew that an earlier run finished. The options say a
  // train_ratio.
  PackJournal(const PackOptions& options, const Pictures& pictures);

  // Writes the plan and the record files that it has yet to make, unless they are there. Files that were made before
  // stay known until forget_earlier(), those also that this plan writes over: where it is stopped, they are still of an
  // earlier set. Those that it does not write count as unfinished, so that find_records() refuses them, as soon as the
  // new set is whole, beside which they would be taken for a part of it; at once where a stopped run did not finish
  // them: beside what it did finish, they are of another set or missing.
  void begin(const std::vector<Path>& planned);
  void forget_earlier();
  // Nothing came of this plan: the journal says again what it said before.
  void withdraw() const;
  // Something of this very plan was done before, and counts.
  bool takes_up() const { return takes_up_; }
  // Record files that a run with this prefix finished before, by whatever plan, also those that are gone.
  const std::set<Path>& named() const { return named_; }
  // Those of them that are still there, and what it did not finish.
  std::vector<Path> made_before() const;
  // Record files that a run with this prefix did not finish: it may have left parts of them.
  std::vector<Path> left_unfinished() const { return {left_unfinished_.begin(), left_unfinished_.end()}; }
  // What an earlier run says of the file, if it is there with that many bytes, its index and its list.
  std::optional<FinishedShard> finished(const Path& rec) const;
  void add(const FinishedShard& shard);

 private:
  void read();
  void note_named(const std::string& name, std::set<Path>& files) const;
  void note_earlier_sets(const Json& journal);
  void drop_replaced_sets();
  void write() const;

  Path path_;
  std::string plan_;
  std::vector<std::string> classes_;
  bool force_;
  bool takes_up_ = false;
  std::optional<std::string> before_;  // the text of the journal that was there
  std::vector<FinishedShard> finished_;
  std::set<Path> named_, left_unfinished_;
  std::set<std::string> unfinished_;  // names of files that this plan has yet to make
  std::vector<std::string> earlier_;  // names of files of earlier sets
  std::set<std::string> left_over_;   // those of them, and of a stopped run, that this plan does not write
  std::vector<EarlierSet> earlier_sets_;
};

}  // namespace dtrain::data
