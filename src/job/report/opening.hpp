// The first lines of a training run's log: what is trained, on what, and where it is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::job {

struct OpeningData {
  std::string name{};                      // as messages show it; empty: none
  std::optional<std::uint64_t> records{};  // nullopt: not known before the workers read them
};

struct OpeningFacts {
  OpeningData training, validation{};
  std::int64_t num_examples = 0;  // train on the first so many; 0: all
  bool synthetic = false;
  std::string network;
  std::int64_t parameters = 0;
  nn::Shape image{};
  int classes = 0;
  bool detects = false;  // objects of the classes, in place of a class for each image
  bool grouped = false;  // each group of images ends an epoch with a smaller step
  int epochs = 0;
  int batch = 0;  // samples of a step, or of each worker's
  bool batch_per_worker = false;
  int shards = 1;
  int hosts = 1, workers = 1;
  int threads = 1;     // of a worker
  std::string gpus{};  // of a host, "0,1"; empty: the CPU
  std::string dtype;
  double average = 0;        // decay of an average of the weights; 0: there is none
  std::string checkpoint{};  // the first file's name without its ending; empty: nothing is kept
  std::uint32_t begins_at = 0;
};

// Sentences without full stops, one a line. Pure.
std::vector<std::string> opening_lines(const OpeningFacts& facts);

}  // namespace dtrain::job
