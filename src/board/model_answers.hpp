// The network of a run and the numbers in its tensors, from its checkpoints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>

#include "target.hpp"

namespace dtrain::board {

// Where a run's files are: its folder, and what its train.toml says. Other users may have written both, so that what
// stands elsewhere and is only named there is opened with the rights of this user on one condition: train.toml is this
// user's own. The training has opened it before then, too. Otherwise only the run's folder and what stands beside it
// are looked at, without following links, and no record files.
struct RunPlace {
  std::string folder, settings;
  // Why what train.toml names is not opened, as the first half of a sentence about it; empty: it is this user's own.
  std::string distrust() const;
  // A path of train.toml, which may be relative to the folder in which the training was started: that folder, or one
  // above the run's, is looked for. Returns the path as it stands there where nothing is found.
  std::string find(const std::string& path) const;
  // The same of record files: prefixes of sets and patterns too, and several with commas between them.
  std::string find_records(const std::string& named) const;
  // The prefix of its checkpoints; empty: unknown, or one that is not opened.
  std::string prefix() const;

 private:
  std::string prefix_named() const;
};

// Throws Missing: why the board does not open what train.toml names.
[[noreturn]] void refuse_to_open(const RunPlace& run, std::string_view what);

// ?checkpoint=STEM: the graph of that checkpoint, or of the newest. Throws Missing where there is none.
Json model_of(const RunPlace& run, const Target& target);

// What the newest checkpoint's manifest says of the network and of the pixels that it takes; nullopt: there is none on
// this machine, or none that can be read.
struct SavedNetwork {
  nn::Graph graph;
  Json preprocessing;
};
std::optional<SavedNetwork> newest_network(const RunPlace& run);

// {"step": BYTES}: what each worker adds to a step and gets back as the sum; null before the first checkpoint.
Json step_bytes_of(const RunPlace& run);

// How the numbers of each tensor are spread: {"tensors": [{"name", "shape", "weights": {"mean", "deviation", "low",
// "high", "bins"}, "state": the same or null}], "state": {"name", "meaning"}}. The state is the first that the
// optimizer keeps; what its numbers are differs between optimizers.
Json spread_of(const RunPlace& run, const Target& target);

}  // namespace dtrain::board
