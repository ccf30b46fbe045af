#include <dtrain/base/error.hpp>

#include "command.hpp"
#include "job.hpp"
#include "launch_options.hpp"
#include "program_work.hpp"

namespace dtrain::cli {
namespace {

ExitCode act(const LaunchOptions& given, const OptionSet& set, Reporter& reporter) {
  const LaunchOptions options = settled(given, set);
  const JobStart start{options.job, set.chosen("num-workers"), false};
  return run_job(
      start,
      [&](const elastic::HostList& hosts, const JobFolder&, Reporter& own) {
        return std::make_unique<ProgramWork>(options, program_of(options), hosts, own);
      },
      reporter);
}

}  // namespace

std::unique_ptr<Command> make_launch() {
  auto command = make_command<LaunchOptions>(
      "launch", "run any training program as the ranks of a job, that may come and go", act);
  command->examples = {
      "dtrain launch -n 4 -- python3 train.py --epochs 10",
      "dtrain launch -H hosts --nproc-per-host 8 --elastic --job-dir /efs/job -- python3 train.py",
      "dtrain launch -n 2 -s 2 -- python3 train_mnist.py --kv-store dist_sync",
      "dtrain launch -n 2 -s 1 --template -- python3 train.py --job_name={role} --task_index={task_index} "
      "--ps_hosts={ps_hosts} --worker_hosts={worker_hosts}"};
  command->see_also = {"hosts list", "events", "tail-logs", "stop", "run", "train"};
  return command;
}

}  // namespace dtrain::cli
