// The shell around decide(): it turns events, requests, the host file and time into events of decide(), and its actions
// into calls of the agent pool and into records.
//
// One thread makes all calls, so there is no lock. The agent pool may call feed() from within a call of this class;
// such work waits in the inbox until the item in progress is done. The agent pool must outlive the coordinator.
//
// JobRecords holds back what is written while another coordinator may lead (may_write). After step_down() nothing is
// written or done any more. A failure inside an item throws to the caller and drops the rest of the inbox.
#include <dtrain/elastic/coordinator.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <utility>

#include <dtrain/base/error_json.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/job_files.hpp>

#include "decide/decide.hpp"
#include "host_requests.hpp"
#include "job_records.hpp"
#include "job_tables.hpp"
#include "records/host_edit.hpp"
#include "records/job_meter.hpp"
#include "records/pending_requests.hpp"

namespace dtrain::elastic {
namespace {

constexpr std::chrono::seconds kMetricsInterval{5};

std::string text_or(const Json& body, std::string_view key, const std::string& otherwise) {
  const Json* value = body.find(key);
  return value ? value->as_string() : otherwise;
}

}  // namespace

Moment Moment::now() { return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()}; }

struct Coordinator::Impl {
  Impl(CoordinatorOptions chosen, AgentPool& pool, Moment now)
      : options(std::move(chosen)),
        agent_pool(pool),
        host_file(options.host_file.empty() ? options.folder / job_file::kHosts : options.host_file),
        watcher(host_file, options.settle, options.slots),
        records(
            options.folder, [this] { return may_write(); }, [this](const Say& line) { say(line); }),
        clock(now),
        tiebreaker_owner(fmt::format("coordinator {} {}", options.term, to_hex(unpredictable_bytes(8)))) {
    GenerationJournal& journal = records.journal();
    Origin origin{journal.next_generation(), journal.next_worker(), records.member_log().present()};
    if (!options.takeover) {
      journal.begin_term(options.term);
      state = initial_state(options.policy, origin, now.time);
      return;
    }
    // A full disk must not end a job that trains.
    records.write_now([&] { journal.begin_term(options.term); });
    const std::vector<Json> past = read_events(options.folder / job_file::kEvents);
    origin.earlier = pending_requests = pending_requests_in(past);
    first = recover_state(options.policy, origin, *options.takeover, now.time);
    state = std::move(first->state);
    if (const std::optional<EarlierWork> work = earlier_work_in(past)) {
      const Time until = state.freezing ? state.freezing->times.cause.value_or(now.time) : now.time;
      meter.resume(*work, until, now.wall - (now.time - until));
    }
  }

  // Input.

  // Works one item after the other, also when the agent pool answers from within a call.
  void serve(std::function<void()> work) {
    inbox.push_back(std::move(work));
    if (busy) return;
    busy = true;
    try {
      for (; !inbox.empty(); inbox.pop_front()) inbox.front()();
    } catch (...) {
      inbox.clear();
      busy = false;
      throw;
    }
    busy = false;
  }

  void tick(Moment now) {
    clock = now;
    records.write_waiting();
    if (!begun) {
      begun = true;
      if (first) {
        continue_job(now);
      } else {
        take_host_list(host_list_in(host_file, options.slots), false, now);
      }
    } else if (state.policy.elastic) {
      watch_host_file(now);
    }
    step(Tick{}, now);
    if (!stepped_down) records.catch_up(now.time);
    if (options.prometheus && now.time >= metrics_due) write_metrics(now);
  }

  // The watcher reads the host file once it is settled, so that a list that is half written or was refused removes
  // no host.
  void continue_job(Moment now) {
    act_all(first->actions, now);
    try {
      (void)host_list_in(host_file, options.slots);
    } catch (const Error& error) {
      say({Say::Kind::warning, error.what(),
           fmt::format("the job keeps its hosts, {}, until that file lists some", fmt::join(state.order, ", "))});
    }
    // First, so that nothing is started for the other requests of a job that ends.
    if (const auto& stop = pending_requests.stop)
      step(StopAsked{stop->reason, stop->at_once, stop->exit_code, stop->save}, now);
    for (const auto& [host, reason] : pending_requests.drained) {
      const bool ends_soon = pending_requests.noticed.contains(host);
      step(ends_soon ? Event(HostNotice{host, true, reason}) : Event(Drain{host, reason}), now);
    }
  }

  void hear(const Request& request, Moment now) {
    try {
      request.answer(answer(request.body, now));
    } catch (const Error& error) {
      request.answer(Json::object({{"error", error_to_json(error)}}));
    }
  }

  void hear(const WorkerSays& says, Moment now) {
    if (const auto* report = std::get_if<Report>(&says.message); report && options.on_report) {
      if (state.workers.contains(says.worker))
        records.record([this, event = report->event] { options.on_report(event); });
    }
    step(says, now);
    if (const auto* progress = std::get_if<Progress>(&says.message)) measure(says.worker, *progress, now);
  }

  void hear(const StaleTerm& event, Moment) { step_down(event.term); }

  void step_down(Term higher) {
    if (stepped_down || higher <= options.term) return;
    stepped_down = true;
    finished = Finish{ExitCode::failed, fmt::format("coordinator {} was elected meanwhile and leads the job", higher)};
  }

  void hear(const auto& event, Moment now) { step(event, now); }

  void measure(WorkerId worker, const Progress& progress, Moment now) {
    const bool speaks = state.current && !state.current->members.empty() && state.current->members.front() == worker;
    if (speaks && progress.generation == state.current->number) meter.heard(progress, now.time);
  }

  // The host file.

  // Returns the lines that are ignored.
  std::vector<std::string> take_host_list(HostList list, bool by_person, Moment now) {
    warn_of(list.problems);
    step(HostsWanted{std::move(list.hosts), by_person, std::move(list.doubtful)}, now);
    return std::move(list.problems);
  }

  void warn_of(const std::vector<std::string>& problems) {
    for (const std::string& problem : problems)
      say({Say::Kind::warning, fmt::format("{}: {}", host_file.string(), problem), ""});
  }

  void watch_host_file(Moment now) {
    if (std::optional<HostList> list = watcher.poll(now.time)) take_host_list(std::move(*list), false, now);
    const std::optional<std::string> problem = watcher.take_problem();
    if (!problem) return;
    say({Say::Kind::warning, fmt::format("{}: {}", host_file.string(), *problem),
         fmt::format("the job keeps its hosts, {}", fmt::join(state.order, ", "))});
    write_event(make_event(EventKind::hosts_refused, {{"removed", Json::array()}, {"reason", *problem}}), now);
  }

  // Requests.

  Json answer(const Json& body, Moment now) {
    const std::string& ask = body.at("ask").as_string();
    if (ask == "list") return hosts_list(state, meter, now.time);
    if (ask == "drain") return drain(body, now);
    if (ask == "stop") return stop(body, now);
    if (ask == "bandwidth") return Json::object({{"ok", true}});
    if (ask == "edit-hosts") return edit_hosts(body, now);
    if (ask == "hosts-changed") return hosts_changed(now);
    throw UsageError(fmt::format("the coordinator knows no request \"{}\"", ask),
                     "both sides must be of the same version of dtrain");
  }

  Json drain(const Json& body, Moment now) {
    const std::vector<std::string> names = hosts_to_drain(state, body, now.time);
    require_changeable();
    for (const std::string& name : names) step(Drain{name, text_or(body, "reason", "asked for")}, now);
    return Json::object({{"ok", true}});
  }

  Json stop(const Json& body, Moment now) {
    if (stepped_down) throw RemoteError("another coordinator leads this job by now", "ask again in a few seconds");
    const Json* at_once = body.find("now");
    step(StopAsked{text_or(body, "reason", "asked for"), at_once && at_once->as_bool()}, now);
    return Json::object({{"ok", true}});
  }

  void require_elastic() const {
    if (state.policy.elastic) return;
    throw UsageError(
        "the hosts of this job are fixed",
        "`dtrain stop` ends it, a training with a checkpoint; a job with setting 'elastic' lets hosts join and leave");
  }

  void require_changeable() const {
    require_elastic();
    if (may_write()) return;
    throw RemoteError("the coordinator does not reach enough of the job's agents to change anything",
                      "try again in a few seconds");
  }

  // The coordinator alone writes the file, so edits from many machines need no lock.
  Json edit_hosts(const Json& body, Moment now) {
    require_changeable();
    check_removed_hosts(state, body, now.time);
    std::vector<HostLine> present;
    for (const std::string& name : state.order) present.push_back(state.hosts.at(name).line);
    const HostsBack back = take_hosts_back(state, body, options.slots);
    std::vector<std::string> repairs = edit_host_file(host_file, present, options.slots, back.rest);
    warn_of(repairs);
    Json changed = hosts_changed(now, std::move(repairs));
    if (!back.names.empty()) step(Undrain{back.names}, now);
    return changed;
  }

  // `problems`: what the edit repaired in the file.
  Json hosts_changed(Moment now, std::vector<std::string> problems = {}) {
    require_elastic();
    for (std::string& problem : take_host_list(host_list_in(host_file, options.slots), true, now))
      problems.push_back(std::move(problem));
    return Json::object({{"ok", true}, {"problems", json_texts(problems)}});
  }

  // Output.

  void step(const Event& event, Moment now) {
    if (finished) return;
    Decision decision = decide(std::move(state), event, now.time);
    state = std::move(decision.state);
    act_all(decision.actions, now);
  }

  void act_all(const std::vector<Action>& actions, Moment now) {
    for (const Action& action : actions) std::visit([&](const auto& kind) { act(kind, now); }, action);
  }

  void act(const StartHost& start, Moment) { agent_pool.start_host(start.host); }
  void act(const RunAdmissionCheck& check, Moment) { agent_pool.run_admission_check(check.host); }
  void act(const StartWorker& start, Moment) { agent_pool.start_worker(start.host, start.slot, start.worker); }
  void act(const Send& send, Moment) { agent_pool.send_all(send.to, send.message); }
  void act(const KillWorker& kill, Moment) { agent_pool.kill_worker(kill.worker, kill.dump_stack); }
  void act(const EndHost& end, Moment) {
    if (state.ending && state.ending->stage == Ending::Stage::agents) leads_to_the_end |= may_write();
    agent_pool.end_host(end.host);
  }
  void act(const AnnounceVoters& voters, Moment) {
    agent_pool.announce_voters(voters.generation, voters.committed, voters.members);
  }
  void act(const AcquireTiebreaker& tiebreaker, Moment now) {
    try {
      const TiebreakerAnswered answered{tiebreaker.generation,
                                        acquire_tiebreaker(options.folder, tiebreaker.generation, tiebreaker_owner)};
      inbox.push_back([this, answered, now] { step(answered, now); });
    } catch (const Error& error) {
      records.complain(error);
    }
  }
  void act(const LogMembership& line, Moment now) {
    records.record([this, line, now] { records.member_log().append(line.added, line.host, now.wall); });
  }
  void act(const JournalEntry& entry, Moment) {
    records.record([this, entry] { records.journal().append(entry); });
  }
  void act(const Emit& emit, Moment now) { write_event(emit.event, now); }
  void act(const Say& line, Moment) { say(line); }
  void act(const Finish& finish, Moment now) {
    finished = finish;
    const std::optional<double> good = meter.goodput(now.time);
    goodput = make_event(EventKind::goodput,
                         {{"percent", good ? Json(100 * *good) : Json()}, {"samples_seen", meter.samples_seen()}});
    if (state.traffic.sent > 0) goodput["sent_bytes"] = state.traffic.sent;
    if (options.prometheus) write_metrics(now);
  }

  void record_end(ExitCode exit_code, const std::string& reason, Moment now) {
    if (!finished || stepped_down || goodput.is_null()) return;
    write_event(make_event(EventKind::finish, {{"exit_code", static_cast<int>(exit_code)}, {"reason", reason}}), now);
    write_event(std::exchange(goodput, Json()), now);
    if (records.waiting() == 0) return;
    say({Say::Kind::warning,
         fmt::format("{}: the last {} of the job are not written, because too few hosts answered lately",
                     options.folder.string(), count_text(records.waiting(), "record")),
         "another coordinator may lead the job, and writes its own"});
  }

  void write_event(const Json& event, Moment now) {
    records.record([this, event, now] {
      const Json written = records.events().append(event, now.wall);
      if (options.on_event) options.on_event(written);
    });
  }

  void say(const Say& line) {
    if (options.on_say) options.on_say(line);
  }

  // Records wait until it is certain that no other coordinator leads.
  bool may_write() const {
    if (stepped_down) return false;
    if (leads_to_the_end) return true;
    const Time since = clock.time - options.lease;
    return leads(state, [&](const auto& hosts) { return agent_pool.answered_since(hosts, since); });
  }

  void write_metrics(Moment now) {
    metrics_due = now.time + kMetricsInterval;
    if (!may_write()) return;
    records.write_now(
        [&] { write_file_atomic(options.folder / job_file::kMetrics, prometheus_text(state, meter, now.time)); });
  }

  const CoordinatorOptions options;
  AgentPool& agent_pool;
  const Path host_file;
  HostFileWatcher watcher;
  JobRecords records;
  State state;
  JobMeter meter;
  std::optional<Finish> finished;
  Json goodput;  // the event, until record_end() writes it
  std::deque<std::function<void()>> inbox;
  bool busy = false;  // an item of the inbox is in progress
  bool begun = false;
  Time metrics_due{};
  Moment clock;  // time of the item in progress
  const std::string tiebreaker_owner;
  std::optional<Decision> first;     // of a takeover
  PendingRequests pending_requests;  // made to earlier coordinators
  bool stepped_down = false;
  bool leads_to_the_end = false;  // it led the job when it ended the agents, so none is left to elect another
};

Coordinator::Coordinator(CoordinatorOptions options, AgentPool& agent_pool, Moment now)
    : impl_(std::make_unique<Impl>(std::move(options), agent_pool, now)) {}
Coordinator::~Coordinator() = default;

void Coordinator::feed(AgentPoolEvent event, Moment now) {
  impl_->serve([this, event = std::move(event), now] {
    impl_->clock = now;
    std::visit([&](const auto& kind) { impl_->hear(kind, now); }, event);
  });
}
void Coordinator::tick(Moment now) {
  impl_->serve([this, now] { impl_->tick(now); });
}
void Coordinator::stop(const std::string& reason, bool at_once, Moment now) {
  impl_->serve([this, reason, at_once, now] { impl_->step(StopAsked{reason, at_once}, now); });
}
void Coordinator::record_end(ExitCode exit_code, const std::string& reason, Moment now) {
  impl_->serve([this, exit_code, reason, now] { impl_->record_end(exit_code, reason, now); });
}
void Coordinator::step_down(Term higher) { impl_->step_down(higher); }
bool Coordinator::stepped_down() const { return impl_->stepped_down; }
const std::optional<Finish>& Coordinator::finished() const { return impl_->finished; }
bool Coordinator::may_write() const { return impl_->may_write(); }
bool Coordinator::is_training() const { return impl_->state.current && impl_->state.current->stepped; }
const std::optional<Failure>& Coordinator::first_failure() const { return impl_->state.first_failure; }
const State& Coordinator::state() const { return impl_->state; }

}  // namespace dtrain::elastic
