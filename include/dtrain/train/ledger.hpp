// Which samples were consumed, step by step: evidence that every sample counted exactly once in an epoch. Each worker
// appends to FOLDER/<worker>.jsonl, one object a line:
//   {"generation": 3, "start": {"epoch": 0, "step": 12}, "samples": 960}    when it enters a generation; of an epoch.
//       With "kept": [14] where the generation does not take that later step of the epoch again
//   {"generation": 3, "epoch": 0, "step": 12, "at": 576, "ids": [7, 2]}     before each reduction: its samples, as
//       data::Batch names them, of a step that begins at that sample of the epoch
// A step that a generation began but did not finish stands there again in the next one, which begins at that step.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/base/growing_file.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// The constructor throws Error naming the file. Lines survive the end of the process, not of the machine.
class LedgerWriter {
 public:
  explicit LedgerWriter(const LedgerOptions& options);
  // `kept`: later steps of the epoch that are trained already.
  void begin_generation(std::uint64_t generation, const Cursor& start, std::uint64_t samples,
                        const std::set<std::uint64_t>& kept = {});
  void add(const Cursor& cursor, std::span<const std::uint32_t> ids);
  // Why lines are being kept instead of written, once each time that it begins; empty: nothing new.
  std::string take_complaint() { return std::exchange(complaint_, {}); }
  // No lines follow: writes what is still kept, and waits so long for room. A complaint then says what is lost.
  void finish(std::chrono::milliseconds patience);

 private:
  void append(const Json& line);

  GrowingFile file_;
  std::uint64_t generation_ = 0;
  std::string complaint_;
  bool said_ = false;
};

// What counts of a job's ledger: each step's samples by the last generation that began at that step or before it. The
// last step of a job that was killed may be incomplete, or was never applied.
struct Ledger {
  using Step = std::pair<std::uint32_t, std::uint64_t>;         // epoch, step
  std::map<Step, std::vector<std::uint32_t>> steps;             // ids, ascending
  std::map<Step, std::uint64_t> begins;                         // sample of the epoch at which a step begins
  std::uint64_t samples = 0;                                    // of an epoch; 0: unknown
  std::vector<std::uint32_t> epoch(std::uint32_t epoch) const;  // ids, ascending, as often as they were consumed
  // Number of samples by epoch that steps consumed and no worker recorded: one that is killed while its folder is full
  // takes what it kept in memory with it. The first recorded step of all, and the last one, are not judged.
  std::map<std::uint32_t, std::uint64_t> missing() const;
};

// Reads all *.jsonl files of the folder. A line that a crash cut off is left out. Throws Error when a file cannot be
// read.
Ledger read_ledger(const Path& folder);

}  // namespace dtrain::train
