#include "job_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/coordinator.hpp>
#include <dtrain/elastic/network_crew.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/channel.hpp>

#include "credential_loan.hpp"
#include "job/spec/job_launcher.hpp"
#include "job/spec/process_facts.hpp"
#include "lent_starts.hpp"
#include "tag_watch.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 50ms;
// For an agent to say how the gate was passed.
constexpr auto kGateSlack = 30s;
constexpr std::size_t kTokenBytes = 32;
// For an agent on another machine: the launcher's own deadlines are shorter, but it may have to copy the program first.
constexpr auto kRemoteStart = 10min;
// Of agents, or of the coordinator to them, that count as lost: at least this.
constexpr elastic::Duration kSilence = 3s;
// For the agents to come to a coordinator that takes over.
constexpr auto kGatherTime = 2s;
constexpr auto kLookInterval = 2s;

elastic::Duration milliseconds(double seconds) { return elastic::Duration(static_cast<std::int64_t>(1e3 * seconds)); }

elastic::GateFor gate_for(const config::JobOptions& job) {
  if (job.prepare_all) return elastic::GateFor::everybody;
  return job.elastic ? elastic::GateFor::newcomers : elastic::GateFor::nobody;
}

elastic::GateOptions gate_options(const config::JobOptions& job) {
  return {.prepare = job.prepare, .prepare_timeout = milliseconds(job.prepare_timeout)};
}

elastic::Policy policy_of(const config::JobOptions& job) {
  elastic::Policy policy;
  policy.elastic = job.elastic;
  policy.boundary = job.boundary == "step" ? elastic::Boundary::step : elastic::Boundary::epoch;
  policy.min_workers = job.min_workers;
  if (job.elastic) policy.max_workers = job.max_workers;
  policy.allow_mass_remove = job.allow_mass_remove;
  policy.heartbeat_timeout = milliseconds(job.heartbeat_timeout);
  policy.allow_mixed_hardware = job.mixed_hardware;
  policy.gate = gate_for(job);
  const elastic::GateOptions gate = gate_options(job);
  policy.gate_timeout = gate.prepare_timeout + gate.check_timeout + kGateSlack;
  if (job.is_on_other_machines()) policy.host_timeout = kRemoteStart;
  policy.quorum = job.outlives_coordinator();
  policy.hold_timeout = job.hold_timeout > 0 ? milliseconds(job.hold_timeout) : std::chrono::hours(24 * 3650);
  return policy;
}

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
  State(JobWork& chosen, int count, const JobFolder& where, const elastic::CoordinatorOrder* inherited,
        Reporter& output)
      : work(chosen),
        job(chosen.job()),
        workers(count),
        folder(where),
        order(inherited),
        reporter(output),
        launcher(make_launcher(chosen.job(), where,
                               [this](const std::string& line) { loop.post([this, line] { reporter.note(line); }); })),
        starts(*launcher, chosen.job().announce) {}

  ExitCode until_over(const std::function<void()>& tell) {
    watch_stop_signals(2);
    tell_running = tell;
    token = order ? order->token : to_hex(unpredictable_bytes(kTokenBytes));
    term = order ? order->mandate.term : elastic::GenerationJournal(folder.path / "journal.jsonl").term() + 1;
    if (work.uses_s3()) loan.emplace(net::AwsSettings{});
    elastic::NetworkCrew crew(loop, starts, crew_options(),
                              [this](elastic::CrewEvent event) { hear(std::move(event), elastic::Moment::now()); });
    if (order) {
      inherit(crew);
    } else {
      begin(crew);
    }
    hands = &crew;
    loop.run();
    const elastic::Finish finish = coordinator->finished().value();
    if (coordinator->deposed()) {
      throw JobFailed(finish.exit_code, finish.reason,
                      fmt::format("dtrain hosts list --job-dir {}", folder.path.string()));
    }
    retire(finish);
    return conclude(finish);
  }

  void begin(elastic::NetworkCrew& crew) {
    work.begin(workers);
    coordinator.emplace(coordinator_options(), crew, elastic::Moment::now());
    publish(crew);
    follow_tags();
    tick();
  }

  // The agents find this process by the file, and by its port, which the one that started it tells the others.
  void inherit(elastic::NetworkCrew& crew) {
    publish(crew);
    reporter.answer(std::to_string(crew.port()));
    // The agent that reads this may end before the job does.
    std::fflush(stdout);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    reporter.note(fmt::format("coordinator {} takes over", term));
    crew.gather(order->mandate.circles, kGatherTime, [this, &crew](std::vector<elastic::HostReport> hosts) {
      if (loan) loan->inherit(hosts);
      elastic::CoordinatorOptions options = coordinator_options();
      options.inheritance = {order->mandate, std::move(hosts)};
      coordinator.emplace(std::move(options), crew, elastic::Moment::now());
      follow_tags();
      tick();
    });
  }

  elastic::Duration silence() const { return std::max(kSilence, policy().heartbeat_timeout); }

  elastic::Policy policy() const {
    elastic::Policy chosen = policy_of(job);
    work.adjust(chosen);
    return chosen;
  }

  elastic::NetworkCrewOptions crew_options() {
    elastic::NetworkCrewOptions options{.token = token,
                                        .job_folder = std::filesystem::absolute(folder.path),
                                        .job = order ? order->document : work.document(),
                                        .gate = gate_options(job),
                                        .notice_url = job.notice_url};
    if (job.is_on_other_machines()) {
      options.bind_address = net::kAnyAddress;
      options.environment = travelling_environment(own_environment(), job.environment);
      if (work.uses_s3()) options.environment = with_variables(far_environment({}), options.environment);
      options.keep_agents_environment = true;
      options.folder = job.sync_to;
      options.join_deadline = kRemoteStart;
      options.silence = silence();
    } else if (!job.environment.empty()) {
      options.environment = with_variables(own_environment(), job.environment);
    }
    options.term = term;
    options.outlive = survives();
    options.patience = policy().hold_timeout;
    if (work.shows_output()) {
      options.on_output = [this](const std::string& host, int slot, std::string_view line) {
        work.show_output(fmt::format("{}.{}", host, slot), line);
      };
    }
    return options;
  }

  elastic::CoordinatorOptions coordinator_options() {
    elastic::CoordinatorOptions options;
    options.policy = policy();
    options.folder = folder.path;
    options.term = term;
    options.lease = silence() * 2 / 3;
    options.logical_shards = work.logical_shards();
    options.slots = work.slots();
    options.prometheus = job.prometheus;
    options.on_report = [this](const Json& report) { show(report); };
    options.on_say = [this](const elastic::Say& line) { say(line); };
    options.on_event = [this](const Json& event) { reporter.detail(event.dump()); };
    return options;
  }

  void hear(elastic::CrewEvent event, elastic::Moment now) {
    if (!coordinator) return;
    if (loan) loan->hear(event);
    if (const auto* up = std::get_if<elastic::HostUp>(&event)) starts.joined(up->host);
    auto* request = std::get_if<elastic::Request>(&event);
    if (!request || !starts.hear(*request, now.time)) coordinator->feed(std::move(event), now);
  }

  // What cannot be shown or written down must not end a job that trains.
  void show(const Json& report) {
    try {
      work.show(report);
    } catch (const Error& error) {
      if (complaints.insert(error.what()).second) reporter.warn(error.what());
    }
  }

  void say(const elastic::Say& line) {
    const std::string text = line.hint.empty() ? line.text : fmt::format("{} ({})", line.text, line.hint);
    if (line.kind == elastic::Say::Kind::note) {
      reporter.note(text);
    } else {
      reporter.warn(text);
    }
  }

  static std::vector<std::string> addresses_of(const elastic::NetworkCrew& crew) {
    if (crew.address() == net::kAnyAddress) return net::own_addresses();
    return {crew.address()};
  }

  bool survives() const { return job.outlives_coordinator(); }

  // Commands find the coordinator by this.
  void publish(const elastic::NetworkCrew& crew) {
    about = {.pid = ::getpid(),
             .host = host_name(),
             .addresses = addresses_of(crew),
             .port = crew.port(),
             .over_ssh = job.is_over_ssh(),
             .sync = synced_folder(job, folder),
             .token = token,
             .term = term,
             .survives = survives()};
    if (order) about.addresses.insert(about.addresses.begin(), order->address);
    write_coordinator(folder, about);
  }

  void follow_tags() {
    if (!job.elastic) return;
    const TagWatchChoice choice = choose_tag_watch(environment);
    if (!choice.complaint.empty()) reporter.warn(choice.complaint);
    if (choice.cluster.empty()) return;
    reporter.note(fmt::format("Follows the tags of cluster {}, as `dtrain cluster watch` does", choice.cluster));
    tags.emplace(choice.cluster, JobFolder{std::filesystem::absolute(folder.path)}, reporter);
  }

  void retire(const elastic::Finish& finish) {
    about.token.clear();
    about.ended = finish.reason.empty() ? "done" : finish.reason;
    try {
      write_coordinator(folder, about);
    } catch (const Error& error) {  // the job is over all the same
      reporter.warn(error.what());
    }
  }

  void tick() {
    const elastic::Moment now = elastic::Moment::now();
    hear_signals(now);
    look_for_successor(now);
    coordinator->tick(now);
    starts.tick(now.time);
    reporter.flush();
    if (loan && hands) loan->send_news(*hands);
    if (tags) tags->tick(now.time);
    const auto& current = coordinator->state().current;
    if (current && current->stepped && tell_running) std::exchange(tell_running, nullptr)();
    if (coordinator->finished()) return loop.stop();
    loop.after(kTick, [this] { tick(); });
  }

  // One that nobody could tell this process of.
  void look_for_successor(elastic::Moment now) {
    if (!survives() || now.time < next_look) return;
    next_look = now.time + kLookInterval;
    try {
      if (const auto file = read_coordinator(folder); file && file->term > term) coordinator->step_down(file->term);
    } catch (const Error&) {  // a folder that is not there now
    }
  }

  // Not even the second may simply end this process: agents would take it for lost, and choose another coordinator.
  void hear_signals(elastic::Moment now) {
    const int heard = stop_signals();
    if (heard == std::exchange(signals_heard, heard)) return;
    const bool at_once = heard > 1;
    if (!at_once) reporter.note(work.first_signal_words());
    coordinator->stop(fmt::format("stopped by {}", stop_signal() == SIGINT ? "SIGINT" : "SIGTERM"), at_once, now);
  }

  ExitCode conclude(const elastic::Finish& finish) {
    if (finish.exit_code == ExitCode::ok) {
      work.end();
      return ExitCode::ok;
    }
    if (stop_signals() > 1) {
      throw Interrupted(stop_signal(), "all processes of the job were ended at once",
                        work.keeps() ? work.what_next() : "");
    }
    const bool resumable = finish.exit_code == ExitCode::resumable;
    if (resumable && work.keeps()) {
      throw Stopped(finish.reason, "the same command with --resume goes on from here, with any number of workers");
    }
    if (resumable && stop_signal() != 0) {
      throw Interrupted(stop_signal(), finish.reason + ", nothing saved", work.what_next());
    }
    if (resumable && work.may_go_on()) throw Stopped(finish.reason, work.what_next());
    tell_first_failure();
    throw JobFailed(exit_code_of(finish), finish.reason, what_next(finish.exit_code));
  }

  ExitCode exit_code_of(const elastic::Finish& finish) const {
    const ExitCode code = finish.exit_code == ExitCode::resumable ? ExitCode::failed : finish.exit_code;
    const auto& failure = coordinator->state().first_failure;
    return failure ? work.exit_code_of(*failure, code) : code;
  }

  std::string what_next(ExitCode code) const {
    if (code == ExitCode::refused && job.is_over_ssh()) {
      return fmt::format("`dtrain run -H {} -- true` tries the hosts alone", job.hostfile->string());
    }
    return work.what_next();
  }

  void tell_first_failure() {
    const auto& failure = coordinator->state().first_failure;
    if (!failure) return;
    reporter.warn(fmt::format("the first failure was {}{}: {}", failure->host,
                              failure->rank >= 0 ? fmt::format(" (rank {})", failure->rank) : "", failure->reason));
    for (const std::string& line : failure->last_lines) reporter.warn("  " + line);
    reporter.note(fmt::format("Its output is in {}", folder.logs().string()));
  }

  JobWork& work;
  const config::JobOptions& job;
  const int workers;
  const JobFolder& folder;
  const elastic::CoordinatorOrder* const order;  // null: this is the first coordinator
  Reporter& reporter;
  net::Loop loop;
  std::unique_ptr<elastic::AgentLauncher> launcher;
  LentStarts starts;
  std::string token;
  elastic::Term term = 0;
  elastic::Time next_look{};
  CoordinatorFile about;
  std::optional<elastic::Coordinator> coordinator;
  std::optional<CredentialLoan> loan;  // where files of the run are behind s3://
  std::optional<TagWatch> tags;        // where the job runs in a cluster that says which
  elastic::Crew* hands = nullptr;
  std::function<void()> tell_running;
  int signals_heard = 0;
  std::set<std::string> complaints;  // about what could not be shown
};

JobRun::JobRun(JobWork& work, int workers, const JobFolder& folder, Reporter& reporter)
    : state_(std::make_unique<State>(work, workers, folder, nullptr, reporter)) {}
JobRun::JobRun(JobWork& work, const JobFolder& folder, const elastic::CoordinatorOrder& order, Reporter& reporter)
    : state_(std::make_unique<State>(work, 0, folder, &order, reporter)) {}
JobRun::~JobRun() = default;

ExitCode JobRun::until_over(const std::function<void()>& tell_running) { return state_->until_over(tell_running); }

}  // namespace dtrain::job
