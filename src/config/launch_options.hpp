// The options of `dtrain launch`: which program, as how many ranks, and what becomes of them when some fail.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/external/program.hpp>

#include "job_options.hpp"
#include "torchrun_options.hpp"

namespace dtrain::config {

// Which failures end a job early. no_progress: several in a row without progress of the program.
enum class StopWhen { failed, no_progress };
constexpr EnumName<StopWhen> kStopWhenNames[] = {{StopWhen::failed, "failed"}, {StopWhen::no_progress, "no-progress"}};

struct LaunchOptions {
  std::vector<std::string> words;   // the command line
  std::string ranks_per_host;       // a number, "gpu", "cpu" or "auto"; empty: one, or what slots= says
  int gpus_per_rank = 0;            // 0: a rank sees all GPUs
  std::string frameworks = "auto";  // or the names of kFrameworks, with commas between them
  int servers = 0;
  bool fills_placeholders = false;
  std::vector<std::string> worker_environment, server_environment;  // NAME=value
  StopWhen stop_when = StopWhen::failed;
  std::string stop_signal = "TERM";
  Seconds grace{10};
  std::string save_signal;  // empty: none
  Seconds save_timeout{60};
  std::optional<int> max_restarts;                  // none: kElasticRestarts with --elastic, else 0
  bool quiet_ranks = false;                         // --no-output, which settled() moves to the next two
  bool hides_stdout = false, hides_stderr = false;  // of the ranks; logs/ holds both
  TorchrunOptions torchrun;                         // settled() moves them to the fields above and below
  bool chose_stop_signal = false;
  bool job_folder_is_open = false;  // all ranks are here, and the user named no folder for their files

  JobOptions job;
};

void bind(OptionSet& set, LaunchOptions& options);

// Throws UsageError for what cannot be meant. Gives JobOptions what the other options say about the hosts.
LaunchOptions settled(LaunchOptions options, const OptionSet& set);
// The same before pods are made, without what depends on the machine of the coordinator, whose pod settles its own
// options. A word of --nproc-per-host becomes a number: that of the GPUs or processors of a worker's pod.
LaunchOptions settled_for_pods(LaunchOptions options, const OptionSet& set);
// How long ranks may take to save and end.
Seconds time_to_end(const LaunchOptions& options);
external::Program program_of(const LaunchOptions& options);

}  // namespace dtrain::config
