#include "job_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/elastic/coordinator.hpp>
#include <dtrain/elastic/network_agent_pool.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/channel.hpp>

#include "agent_pool_options.hpp"
#include "client_side_starts.hpp"
#include "credential_forwarder.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/job_launcher.hpp"
#include "job/spec/process_facts.hpp"
#include "job_end.hpp"
#include "job_policy.hpp"
#include "tag_watch.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 50ms;
constexpr std::size_t kTokenBytes = 32;
// Time for the agents to connect to a coordinator that takes over, and time after the last one where some do not come.
constexpr elastic::CollectTimes kCollectTimes{.wait = 2s, .quiet = 500ms};
constexpr auto kLookInterval = 2s, kPublishInterval = 2s;

// The agents that elected this coordinator, or that it needs.
std::vector<elastic::Voter> voters_of(const elastic::CoordinatorOrder* order) {
  std::vector<elastic::Voter> voters;
  if (!order) return voters;
  for (const elastic::VoterSet& set : order->election.voter_sets)
    voters.insert(voters.end(), set.voters.begin(), set.voters.end());
  return voters;
}

// The error with what to do, and what it means for the job.
std::string complaint_about(const Error& error, const std::string& meaning) {
  return with_hint(error.what(), error.hint().empty() ? meaning : fmt::format("{}; {}", error.hint(), meaning));
}

bool asks_to_stop(const Json& request) {
  const Json* ask = request.find("ask");
  return ask != nullptr && *ask == Json("stop");
}

std::string meaning_of_lost(const Json& report) {
  if (event_kind(report) != EventKind::checkpoint) return "the job goes on";
  return "the job goes on, but a worker that starts again needs to know its newest checkpoint";
}

}  // namespace

// Everything runs on the thread of `loop`, which is the caller's: messages of agents, the coordinator's decisions,
// timers and reports. Other threads touch it only by posting to the loop (notes of the launcher) or behind their own
// lock (CredentialForwarder). Signals are polled by tick(). The agent pool is a local variable of until_over() and
// outlives the loop's run; `agent_pool_in_use` points to it from then on. The launcher is declared after the loop and
// so is destroyed before it, when its starts end; nothing that is posted afterwards runs. Errors of reports and of
// coordinator.json become warnings, because they must not end a job that trains; only the first coordinator needs the
// file at its start. Every other exception ends the process, and the agents then elect another coordinator or end
// their workers.
struct JobRun::State {
  State(JobWork& chosen, int count, const JobFolder& where, const elastic::CoordinatorOrder* inherited,
        Reporter& output)
      : work(chosen),
        job(chosen.job()),
        workers(count),
        folder(where),
        order(inherited),
        reporter(output),
        launcher(make_launcher(chosen.job(), where, voters_of(inherited),
                               [this](const std::string& line) { loop.post([this, line] { reporter.note(line); }); })),
        starts(*launcher, chosen.job().announce) {}

  ExitCode until_over(const std::function<void()>& tell) {
    watch_stop_signals(survives() ? kEverySignal : 2);
    reporter.never_wait_for_readers();
    tell_running = tell;
    token = order ? order->token : to_hex(unpredictable_bytes(kTokenBytes));
    term = order ? order->election.term : elastic::GenerationJournal(folder.journal()).term() + 1;
    if (work.uses_s3()) credentials.emplace(net::AwsSettings{});
    elastic::NetworkAgentPool agent_pool(
        loop, starts, agent_pool_options(work, folder, order, token, term),
        [this](elastic::AgentPoolEvent event) { hear(std::move(event), elastic::Moment::now()); });
    if (order) {
      inherit(agent_pool);
    } else {
      begin(agent_pool);
    }
    agent_pool_in_use = &agent_pool;
    loop.run();
    if (!coordinator->stepped_down()) give_way_to_successor();
    const elastic::Finish finish = coordinator->finished().value();
    if (coordinator->stepped_down()) throw Replaced(finish.reason, folder);
    return conclude_and_retire({.finish = finish,
                                .first_failure = coordinator->first_failure(),
                                .signals = stop_signals(),
                                .signal = stop_signal(),
                                .asked = stop_asked || stop_signal() != 0});
  }

  // The last words come before the record of the end, up to which watchers read the log.
  ExitCode conclude_and_retire(const JobEnd& end) {
    try {
      const ExitCode code = conclude(end, work, folder, reporter);
      reporter.flush();
      retire(code, end.finish.reason);
      return code;
    } catch (const Error& error) {
      if (is_alone()) write_end(error, reporter);
      about.program_failed = is_failure_of_program(end, work);
      retire(error.exit_code(), error.what());
      if (is_alone()) return error.exit_code();
      refuse_next_pod(error, end);
      throw;
    } catch (const std::exception& error) {
      retire(ExitCode::failed, error.what());
      throw;
    }
  }

  void begin(elastic::NetworkAgentPool& agent_pool) {
    work.begin(workers);
    coordinator.emplace(coordinator_options(), agent_pool, elastic::Moment::now());
    about = description(agent_pool);
    write_coordinator(folder, about);
    is_published = true;
    follow_tags();
    tick();
  }

  // The port goes to stdout, for the agent that started this process: it tells the other agents. Commands, and agents
  // that hear nothing of it, find this process through the file, which is written later where the disk is full.
  void inherit(elastic::NetworkAgentPool& agent_pool) {
    about = description(agent_pool);
    publish();
    tell_port(agent_pool.port());
    // The agent that reads this pipe may end before the job does.
    std::fflush(stdout);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    reporter.note(fmt::format("coordinator {} takes over", term));
    agent_pool.collect_agents(order->election, kCollectTimes,
                              [this, &agent_pool](std::vector<elastic::HostReport> hosts) {
                                if (credentials) credentials->inherit(hosts);
                                elastic::CoordinatorOptions options = coordinator_options();
                                options.takeover = {order->election, std::move(hosts)};
                                coordinator.emplace(std::move(options), agent_pool, elastic::Moment::now());
                                follow_tags();
                                tick();
                              });
  }

  elastic::CoordinatorOptions coordinator_options() {
    elastic::CoordinatorOptions options;
    options.policy = policy_of(work);
    options.folder = folder.path;
    options.term = term;
    options.lease = agent_silence(options.policy) * 2 / 3;
    options.slots = work.slots();
    options.prometheus = job.prometheus;
    options.on_report = [this](const Json& report) { show(report); };
    options.on_say = [this](const elastic::Say& line) { say(line); };
    options.on_event = [this](const Json& event) { reporter.detail(event.dump()); };
    return options;
  }

  void hear(elastic::AgentPoolEvent event, elastic::Moment now) {
    if (!coordinator) return;
    if (credentials) credentials->hear(event);
    if (const auto* up = std::get_if<elastic::HostUp>(&event)) starts.joined(up->host);
    auto* request = std::get_if<elastic::Request>(&event);
    if (request) stop_asked = stop_asked || asks_to_stop(request->body);
    if (!request || !starts.hear(*request, now.time)) coordinator->feed(std::move(event), now);
  }

  // A report that cannot be shown or written must not end the job.
  void show(const Json& report) {
    try {
      work.show(report);
    } catch (const Error& error) {
      if (complaints.insert(error.what()).second) reporter.warn(complaint_about(error, meaning_of_lost(report)));
    }
  }

  void catch_up() {
    try {
      work.catch_up();
    } catch (const Error& error) {
      if (complaints.insert(error.what()).second) reporter.warn(complaint_about(error, "the job goes on"));
    }
  }

  void say(const elastic::Say& line) {
    const std::string text = with_hint(line.text, line.hint);
    if (line.kind == elastic::Say::Kind::note) {
      reporter.note(text);
    } else {
      reporter.warn(text);
    }
  }

  static std::vector<std::string> addresses_of(const elastic::NetworkAgentPool& agent_pool) {
    if (agent_pool.address() == net::kAnyAddress) return net::own_addresses();
    return {agent_pool.address()};
  }

  bool survives() const { return job.outlives_coordinator(); }
  // No user waits for this process: it took over, or the command that detached it has returned.
  bool is_alone() const { return order || (job.detach && !tell_running); }

  // One that takes over keeps what the coordinators before it wrote: its machine may not have that folder.
  Path started_in() const {
    if (!order) return std::filesystem::current_path();
    try {
      if (const auto before = read_coordinator(folder)) return before->started_in;
    } catch (const Error&) {  // the folder is not available now
    }
    return {};
  }

  // For coordinator.json, by which commands find this coordinator.
  CoordinatorFile description(const elastic::NetworkAgentPool& agent_pool) const {
    CoordinatorFile file{.pid = ::getpid(),
                         .host = host_name(),
                         .addresses = addresses_of(agent_pool),
                         .port = agent_pool.port(),
                         .launcher = job.used_launcher(),
                         .sync = synced_folder(job, folder),
                         .started_in = started_in(),
                         .token = token,
                         .term = term,
                         .survives = survives(),
                         .data = job.transport != comm::Transport::tcp
                                     ? enum_name(config::kTransportNames, job.transport)
                                 : job.plain_data ? "plain"
                                                  : "tls",
                         .runs_program = work.runs_program(),
                         .has_log = job.detach || order,
                         .stop_timeout = policy_of(work).stop_timeout};
    if (order && file.addresses.front() != order->address)
      file.addresses.insert(file.addresses.begin(), order->address);
    return file;
  }

  // A folder that cannot be written now must not end a job that trains: the agents of its workers know the port.
  void publish() {
    try {
      write_coordinator(folder, about);
      is_published = true;
    } catch (const Error& error) {
      if (!complaints.insert(error.what()).second) return;
      reporter.warn(complaint_about(error, "until it is written, commands do not find this coordinator"));
    }
  }

  // A coordinator that may have been replaced must not put its address before its successor's.
  void publish_again(elastic::Moment now) {
    if (is_published || now.time < next_publish || !coordinator->may_write()) return;
    next_publish = now.time + kPublishInterval;
    give_way_to_successor();
    if (coordinator->stepped_down()) return;
    publish();
    if (is_published)
      reporter.note(fmt::format("{} is written: commands find this coordinator", folder.coordinator().string()));
  }

  void follow_tags() {
    if (!job.elastic) return;
    const TagWatchChoice choice = choose_tag_watch(environment);
    if (!choice.complaint.empty()) reporter.warn(choice.complaint);
    if (choice.cluster.empty()) return;
    reporter.note(fmt::format("Follows the tags of cluster {}, as `dtrain cluster watch` does", choice.cluster));
    tags.emplace(choice.cluster, JobFolder{std::filesystem::absolute(folder.path)}, reporter);
  }

  void retire(ExitCode code, const std::string& reason) {
    coordinator->record_end(code, reason, elastic::Moment::now());
    about.token.clear();
    about.ended = reason.empty() ? "done" : reason;
    about.exit_code = code;
    try {
      write_coordinator(folder, about);
    } catch (const Error& error) {  // the job is over in any case
      reporter.warn(error.what());
    }
  }

  void tick() {
    const elastic::Moment now = elastic::Moment::now();
    hear_signals(now);
    look_for_successor(now);
    coordinator->tick(now);
    publish_again(now);
    catch_up();
    starts.tick(now.time);
    if (credentials && agent_pool_in_use) credentials->send_news(*agent_pool_in_use);
    if (tags) tags->tick(now.time);
    if (coordinator->is_training() && tell_running) std::exchange(tell_running, nullptr)();
    if (coordinator->finished()) return loop.stop();
    loop.after(kTick, [this] { tick(); });
  }

  // Looks for a successor in the job folder, because no message may reach a coordinator that was cut off.
  void look_for_successor(elastic::Moment now) {
    if (!survives() || now.time < next_look) return;
    next_look = now.time + kLookInterval;
    give_way_to_successor();
  }

  void give_way_to_successor() {
    try {
      if (const auto file = read_coordinator(folder); file && file->term > term) coordinator->step_down(file->term);
    } catch (const Error&) {  // the folder is not available now
    }
  }

  // No signal must end this process directly if the agents would then elect another coordinator.
  void hear_signals(elastic::Moment now) {
    const int heard = stop_signals();
    if (heard == std::exchange(signals_heard, heard)) return;
    const bool at_once = heard > 1;
    if (!at_once) reporter.note(work.first_signal_words());
    coordinator->stop(stop_reason(stop_signal()), at_once, now);
  }

  JobWork& work;
  const config::JobOptions& job;
  const int workers;
  const JobFolder& folder;
  const elastic::CoordinatorOrder* const order;  // null: this is the first coordinator
  Reporter& reporter;
  net::Loop loop;
  std::unique_ptr<elastic::AgentLauncher> launcher;
  ClientSideStarts starts;
  std::string token;
  elastic::Term term = 0;
  elastic::Time next_look{};
  CoordinatorFile about;
  bool is_published = false;  // `about` is in the job folder
  elastic::Time next_publish{};
  std::optional<elastic::Coordinator> coordinator;
  std::optional<CredentialForwarder> credentials;  // set if files of the run are behind s3://
  std::optional<TagWatch> tags;                    // set if the environment names the cluster that the job runs in
  elastic::AgentPool* agent_pool_in_use = nullptr;
  std::function<void()> tell_running;
  std::function<void(std::uint16_t)> tell_port;
  int signals_heard = 0;
  bool stop_asked = false;           // by `dtrain stop` or another command
  std::set<std::string> complaints;  // warnings about reports that could not be shown
};

JobRun::JobRun(JobWork& work, int workers, const JobFolder& folder, Reporter& reporter)
    : state_(std::make_unique<State>(work, workers, folder, nullptr, reporter)) {}
JobRun::JobRun(JobWork& work, const JobFolder& folder, const elastic::CoordinatorOrder& order,
               std::function<void(std::uint16_t)> tell_port, Reporter& reporter)
    : state_(std::make_unique<State>(work, 0, folder, &order, reporter)) {
  state_->tell_port = std::move(tell_port);
}
JobRun::~JobRun() = default;

ExitCode JobRun::until_over(const std::function<void()>& tell_running) { return state_->until_over(tell_running); }

}  // namespace dtrain::job
