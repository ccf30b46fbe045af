#include "job_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/coordinator.hpp>
#include <dtrain/elastic/network_crew.hpp>
#include <dtrain/launch/local_launcher.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/train/report_json.hpp>

#include "process_facts.hpp"
#include "signals.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 50ms;
constexpr std::size_t kTokenBytes = 32;

elastic::Duration milliseconds(double seconds) { return elastic::Duration(static_cast<std::int64_t>(1e3 * seconds)); }

elastic::Policy policy_of(const JobOptions& job) {
  elastic::Policy policy;
  policy.elastic = job.elastic;
  policy.boundary = job.boundary == "step" ? elastic::Boundary::step : elastic::Boundary::epoch;
  policy.min_workers = job.min_workers;
  if (job.elastic) policy.max_workers = job.max_workers;
  policy.allow_mass_remove = job.allow_mass_remove;
  policy.heartbeat_timeout = milliseconds(job.heartbeat_timeout);
  policy.hold_timeout = job.hold_timeout > 0 ? milliseconds(job.hold_timeout) : std::chrono::hours(24 * 3650);
  return policy;
}

// What is needed later of what rank 0 reported: the evaluation by the result line, the checkpoint by workers that start
// after all others died.
class LastReports final : public train::Observer {
 public:
  explicit LastReports(const JobFolder& folder) : folder_(folder) { std::filesystem::remove(folder.latest()); }
  void on_evaluation(const train::EvaluationReport& report) override { evaluation = report; }
  void on_checkpoint(const Path& file) override {
    write_file_atomic(folder_.latest(), Path(file).replace_extension(".json").string());
  }
  std::optional<train::EvaluationReport> evaluation;

 private:
  const JobFolder& folder_;
};

// The job cannot go on, with the exit code that says of what kind that is.
class JobFailed : public Error {
 public:
  JobFailed(ExitCode code, const std::string& what, std::string hint) : Error(what, std::move(hint)), code_(code) {}
  ExitCode exit_code() const override { return code_; }
  std::string_view kind() const override { return "job-failed"; }

 private:
  ExitCode code_;
};

}  // namespace

struct JobRun::State {
  State(const TrainRun& chosen, int count, const JobFolder& where, Console& output)
      : run(chosen),
        workers(count),
        folder(where),
        console(output),
        watch(output, chosen),
        last(where),
        news(watch.observers()) {
    watch.observers().add(last);
  }

  ExitCode until_over(const std::function<void()>& tell) {
    tell_running = tell;
    watch.begin(workers);
    elastic::NetworkCrew crew(loop, launcher, crew_options(), [this](elastic::CrewEvent event) {
      if (coordinator) coordinator->feed(std::move(event), elastic::Moment::now());
    });
    coordinator.emplace(coordinator_options(), crew, elastic::Moment::now());
    publish(crew);
    tick();
    loop.run();
    const elastic::Finish finish = coordinator->finished().value();
    retire(finish);
    return conclude(finish);
  }

  elastic::NetworkCrewOptions crew_options() {
    token = to_hex(unpredictable_bytes(kTokenBytes));
    elastic::NetworkCrewOptions options{
        .token = token, .job_folder = std::filesystem::absolute(folder.path), .job = run_to_json(run)};
    if (run.options.job.log_per_worker) {
      options.on_output = [this](const std::string& host, int slot, std::string_view line) {
        console.log(fmt::format("[{}.{}] {}", host, slot, line));
      };
    }
    return options;
  }

  elastic::CoordinatorOptions coordinator_options() {
    elastic::CoordinatorOptions options;
    options.policy = policy_of(run.options.job);
    options.folder = folder.path;
    if (!run.options.job.is_per_worker()) options.logical_shards = run.options.compute.logical_shards;
    options.prometheus = run.options.job.prometheus;
    options.on_report = [this](const Json& report) { show(report); };
    options.on_say = [this](const elastic::Say& line) { say(line); };
    options.on_event = [this](const Json& event) { console.detail(event.dump()); };
    return options;
  }

  // What cannot be shown or written down must not end a job that trains.
  void show(const Json& report) {
    try {
      train::replay(report, news);
    } catch (const Error& error) {
      console.warning(error.what());
    }
  }

  void say(const elastic::Say& line) {
    const std::string text = line.hint.empty() ? line.text : fmt::format("{} ({})", line.text, line.hint);
    if (line.kind == elastic::Say::Kind::note) {
      console.log(text);
    } else {
      console.warning(text);
    }
  }

  // Commands find the coordinator by this.
  void publish(const elastic::NetworkCrew& crew) {
    about = {.pid = ::getpid(), .host = host_name(), .address = crew.address(), .port = crew.port(), .token = token};
    write_coordinator(folder, about);
  }

  void retire(const elastic::Finish& finish) {
    about.token.clear();
    about.ended = finish.reason.empty() ? "done" : finish.reason;
    write_coordinator(folder, about);
  }

  void tick() {
    const elastic::Moment now = elastic::Moment::now();
    hear_signals(now);
    coordinator->tick(now);
    const auto& current = coordinator->state().current;
    if (current && current->stepped && tell_running) std::exchange(tell_running, nullptr)();
    if (coordinator->finished()) return loop.stop();
    loop.after(kTick, [this] { tick(); });
  }

  // The second signal ends this process as if unhandled: agents and workers end with it.
  void hear_signals(elastic::Moment now) {
    if (stop_signal() == 0 || std::exchange(stopping, true)) return;
    console.log("Stopping: the workers finish their step and save; once more ends everything at once");
    coordinator->stop(fmt::format("stopped by {}", stop_signal() == SIGINT ? "SIGINT" : "SIGTERM"), false, now);
  }

  ExitCode conclude(const elastic::Finish& finish) {
    if (finish.exit_code == ExitCode::ok) {
      train::TrainResult result;
      result.cursor.epoch = static_cast<std::uint32_t>(run.options.epochs);
      result.evaluation = last.evaluation;
      watch.end(result);
      return ExitCode::ok;
    }
    const bool keeps = run.options.model_prefix.has_value();
    const bool resumable = finish.exit_code == ExitCode::resumable;
    if (resumable && keeps) {
      throw Stopped(finish.reason, "the same command with --resume goes on from here, with any number of workers");
    }
    if (resumable && stop_signal() != 0) {
      throw Interrupted(stop_signal(), finish.reason + ", nothing saved",
                        "give --model-prefix to keep what was trained");
    }
    tell_first_failure();
    throw JobFailed(resumable ? ExitCode::failed : finish.exit_code, finish.reason,
                    keeps ? "the same command with --resume goes on from the last checkpoint"
                          : "give --model-prefix to keep what was trained");
  }

  void tell_first_failure() {
    const auto& failure = coordinator->state().first_failure;
    if (!failure) return;
    console.warning(fmt::format("the first failure was {}{}: {}", failure->host,
                                failure->rank >= 0 ? fmt::format(" (rank {})", failure->rank) : "", failure->reason));
    for (const std::string& line : failure->last_lines) console.warning("  " + line);
    console.log(fmt::format("Its output is in {}", folder.logs().string()));
  }

  const TrainRun& run;
  const int workers;
  const JobFolder& folder;
  Console& console;
  RunWatch watch;
  LastReports last;
  train::OnlyNews news;
  net::Loop loop;
  launch::LocalLauncher launcher;
  std::string token;
  CoordinatorFile about;
  std::optional<elastic::Coordinator> coordinator;
  std::function<void()> tell_running;
  bool stopping = false;
};

JobRun::JobRun(const TrainRun& run, int workers, const JobFolder& folder, Console& console)
    : state_(std::make_unique<State>(run, workers, folder, console)) {}
JobRun::~JobRun() = default;

ExitCode JobRun::until_over(const std::function<void()>& tell_running) { return state_->until_over(tell_running); }

}  // namespace dtrain::cli
