#include "torchrun_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "launch_options.hpp"
#include "refused_options.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kRunOnce = "dtrain launch starts the ranks of all hosts: run it once, with -H FILE";

constexpr RefusedOption kRefused[] = {
    {"--rdzv-conf", "CONF", "dtrain has no rendezvous backend with settings of its own",
     "--comm-timeout and --heartbeat-timeout are its waits"},
    {"--node-rank", "N", "hosts are not started one by one", kRunOnce},
    {"--master-addr", "ADDRESS", "dtrain launch chooses the address of rank 0", kRunOnce},
    {"--master-port", "PORT", "dtrain launch chooses a free port", "leave it out; MASTER_PORT names the port"},
    {"--monitor-interval", "S", "the end of a rank is noticed at once", "leave it out"},
    {"--start-method", "METHOD", "ranks are programs, not functions of one Python process", "leave it out"},
    {"--run-path", "", "every rank has an interpreter of its own", "give `-- python3 SCRIPT ARGUMENTS`"},
    {"--local-addr", "ADDRESS", "each host's address is the one by which the others reach it", "leave it out"},
    {"--local-ranks-filter", "RANKS", "output is shown of all ranks or of none",
     "use --no-output, and `dtrain tail-logs` for one of them"}};

void check_backend(const std::string& backend) {
  if (backend == "c10d" || backend == "static") return;
  throw UsageError(fmt::format("{} is not supported: dtrain itself agrees on the ranks", backend),
                   "leave it out, or use c10d");
}

void check_endpoint(const std::string& endpoint) {
  const std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host.empty() || host == "localhost" || host == "127.0.0.1") return;
  throw UsageError("dtrain launch has no endpoint that hosts join by themselves", kRunOnce);
}

constexpr char kStreams[] = "0|1|2|3";

struct ChosenStreams {
  bool output = false, error = false;
};

// `streams`: as in torchrun, 0 for neither, 1 for stdout, 2 for stderr, 3 for both; nullopt: not given.
ChosenStreams chosen_streams(const char* flag, const std::optional<std::string>& streams) {
  const std::string& number = streams ? *streams : "0";
  if (number.size() != 1 || number < "0" || number > "3") {
    throw UsageError(fmt::format("{} {}: must be one number from 0 to 3, for all ranks", flag, number),
                     "1 is for stdout, 2 for stderr, 3 for both, 0 for neither");
  }
  return {.output = number == "1" || number == "3", .error = number >= "2"};
}

// As in torchrun, --tee shows what --redirects hides.
void apply_streams(LaunchOptions& options) {
  const ChosenStreams hidden = chosen_streams("--redirects", options.torchrun.redirects);
  const ChosenStreams shown = chosen_streams("--tee", options.torchrun.tee);
  options.hides_stdout = (options.quiet_ranks || hidden.output) && !shown.output;
  options.hides_stderr = (options.quiet_ranks || hidden.error) && !shown.error;
}

void check_nodes(const std::string& nodes) {
  const auto number = parse_integer(nodes);
  if (number && *number >= 1 && *number <= 100'000) return;
  throw UsageError(fmt::format("--nnodes {}: must be a number of hosts", nodes),
                   "for a range use --elastic with --min-workers and --max-workers");
}

// A flag that has the meaning of `own` replaces what a weaker source says of that.
void let_flag_decide(const Option& flag, Option& own) {
  own.set(flag.show());
  own.given = flag.show();
  own.source = flag.source;
  own.origin = flag.shown_name();
}

// --job-dir beside --log-dir gives the folder, so --log-dir replaces only what comes from a weaker source.
void apply_names(OptionSet& set) {
  Option &nodes = *set.find("nnodes"), &workers = *set.find("num-workers");
  if (set.chosen("nnodes")) {
    check_nodes(nodes.show());
    if (workers.source == nodes.source) throw UsageError("--nnodes and --num-workers are the same", "give one of them");
    let_flag_decide(nodes, workers);
    nodes.source = Source::fallback;
    nodes.given.reset();
  }
  const Option& log_dir = *set.find("log-dir");
  if (Option& job_dir = *set.find("job-dir"); log_dir.source > job_dir.source) let_flag_decide(log_dir, job_dir);
}

}  // namespace

void bind_torchrun(OptionSet& set, LaunchOptions& options) {
  TorchrunOptions& torchrun = options.torchrun;
  set.group("Names of torchrun");
  set.add("--nproc-per-node", options.ranks_per_host, "K|auto|gpu|cpu", "the same as --nproc-per-host").flag_only =
      true;
  set.find("nproc-per-node")->same_as = "nproc-per-host";
  set.add("--nnodes", torchrun.nodes, "N", "the same as --num-workers").flag_only = true;
  set.add("--standalone", torchrun.standalone, "run on this machine only, as without -H").flag_only = true;
  set.add("-m,--module", torchrun.module, "MODULE",
          "start COMMAND as arguments of `python3 -m MODULE`, or of $PYTHON_EXEC in place of python3")
      .flag_only = true;
  set.add("--no-python", torchrun.no_python, "accepted, because COMMAND is always a whole command").flag_only = true;
  set.add("-r,--redirects", torchrun.redirects, kStreams,
          "streams of the ranks that are not shown: 1 stdout, 2 stderr, 3 both, like --no-output; logs/ always holds "
          "both")
      .flag_only = true;
  set.add("-t,--tee", torchrun.tee, kStreams, "streams that are shown although --redirects or --no-output hides them")
      .flag_only = true;
  set.add("--log-dir", torchrun.log_dir, "the job folder, unless --job-dir gives it; logs are in its logs/").flag_only =
      true;
  set.add("--rdzv-id", torchrun.run_id, "ID", "value of TORCHELASTIC_RUN_ID").flag_only = true;
  set.add("--role", torchrun.role, "NAME", "value of ROLE_NAME").flag_only = true;
  set.add_custom("--rdzv-backend", "c10d|static", "accepted, because dtrain itself agrees on the ranks", check_backend,
                 [] { return std::string(); })
      .flag_only = true;
  set.add_custom("--rdzv-endpoint", "HOST:PORT", "accepted for this machine, whose ports dtrain chooses",
                 check_endpoint, [] { return std::string(); })
      .flag_only = true;
  refuse_options(set, kRefused);
  set.after_sources(apply_names);
}

void apply_torchrun(LaunchOptions& options) {
  const TorchrunOptions& torchrun = options.torchrun;
  if (torchrun.standalone && options.job.is_on_other_machines()) {
    throw UsageError("--standalone: this job runs on other machines", "leave out --standalone, or -H and --launcher");
  }
  apply_streams(options);
  if (!torchrun.run_id.empty()) options.worker_environment.push_back("TORCHELASTIC_RUN_ID=" + torchrun.run_id);
  if (!torchrun.role.empty()) options.worker_environment.push_back("ROLE_NAME=" + torchrun.role);
  if (!torchrun.module.empty()) {
    const std::string python = environment("PYTHON_EXEC").value_or("python3");
    options.words.insert(options.words.begin(), {python, "-m", torchrun.module});
  }
  if (options.words.empty()) {
    throw UsageError("COMMAND: missing", "give the program after --, as in `dtrain launch -n 2 -- python3 train.py`");
  }
}

}  // namespace dtrain::config
