// What a job does, as it travels from the command that began it to the coordinator, a coordinator that takes over,
// agents and workers: one value with one JSON form. Neither the environment nor the configuration files of a reader
// change it.
#pragma once

#include <string>
#include <variant>

#include <dtrain/base/json.hpp>
#include <dtrain/external/program.hpp>
#include <dtrain/nn/graph.hpp>

#include "launch_options.hpp"
#include "train_options.hpp"

namespace dtrain::config {

// Changes with every change of the JSON form that an older reader would misunderstand.
constexpr const char* kRunSpecSchema = "dtrain.run/2";

// dtrain's own training.
struct TrainSpec {
  TrainOptions options;  // settled: what the command line left open is chosen
  nn::Graph graph;
  Json data;          // what the files of the run must be on every host (job/spec/data_facts.hpp)
  std::string start;  // manifest of the checkpoint from which --resume goes on; else empty
  // What the owner's file beside --model-prefix holds (job/spec/prefix_owner.hpp), for hosts to see that the folder is
  // the same; empty: there is nothing to compare.
  std::string prefix_token{};
};

// Another program's ranks.
struct ProgramSpec {
  LaunchOptions options;
  external::Program program;
};

struct RunSpec {
  // The folder in which the user began the job, or where hosts have a copy of it (--sync-dst-dir). Paths of the options
  // are as the user wrote them, so they mean the same there and in messages.
  std::string folder;
  std::variant<TrainSpec, ProgramSpec> work;

  const JobOptions& job() const;
};

// The spec of a job that this process begins: its folder is the current one, unless the options copy that elsewhere.
RunSpec make_run_spec(std::variant<TrainSpec, ProgramSpec> work);

Json to_json(const RunSpec& spec);
// Throws DataError: another schema, another version of dtrain, or a field that is missing or wrong. The number of
// threads is that of this machine unless the user chose one.
RunSpec run_spec_from_json(const Json& document);

// Makes spec.folder the current folder where this machine has it.
void enter_folder(const RunSpec& spec);

}  // namespace dtrain::config
