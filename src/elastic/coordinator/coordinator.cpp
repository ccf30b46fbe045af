#include <dtrain/elastic/coordinator.hpp>

#include <fmt/format.h>

#include <deque>
#include <set>
#include <utility>

#include <dtrain/base/error_json.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/orders.hpp>

#include "records/host_edit.hpp"
#include "records/job_meter.hpp"
#include "records/job_tables.hpp"

namespace dtrain::elastic {
namespace {

constexpr std::chrono::seconds kMetricsInterval{5}, kCatchUpInterval{1};
constexpr std::size_t kMostDeferred = 100'000;

Json error_answer(const Error& error) { return Json::object({{"error", error_to_json(error)}}); }

std::string text_or(const Json& body, std::string_view key, const std::string& otherwise) {
  const Json* value = body.find(key);
  return value ? value->as_string() : otherwise;
}

}  // namespace

Moment Moment::now() { return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()}; }

struct Coordinator::Impl {
  Impl(CoordinatorOptions chosen, Crew& hands, Moment now)
      : options(std::move(chosen)),
        crew(hands),
        host_file(options.host_file.empty() ? options.folder / "host_worker" : options.host_file),
        watcher(host_file, options.settle, options.slots),
        member_log(options.folder / "host_worker_log"),
        events(options.folder / "events.jsonl"),
        journal(options.folder / "journal.jsonl"),
        clock(now),
        claim_owner(fmt::format("coordinator {} {}", options.term, to_hex(unpredictable_bytes(8)))) {
    journal.begin_term(options.term);
    const Origin origin{journal.next_generation(), journal.next_worker(), member_log.present()};
    if (options.inheritance) {
      orders = orders_in(read_events(options.folder / "events.jsonl"));
      first = inherit(options.policy, origin, *options.inheritance, now.time);
      state = std::move(first->state);
    } else {
      state = initial_state(options.policy, origin, now.time);
    }
  }

  // What comes in.

  // One thing after the other, also when the crew answers from within a call.
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
    write_deferred();
    if (!begun) {
      begun = true;
      if (first) act_all(first->actions, now);
      read_host_file(false, now);
      repeat_orders(now);
    } else if (state.policy.elastic) {
      watch_host_file(now);
    }
    step(Tick{}, now);
    catch_up(now);
    if (options.prometheus && now.time >= metrics_due) write_metrics(now);
  }

  void repeat_orders(Moment now) {
    for (const auto& [host, reason] : orders.drained) step(Drain{host, reason}, now);
    if (orders.stop) step(StopAsked{*orders.stop}, now);
  }

  void hear(const Request& request, Moment now) {
    try {
      request.answer(answer(request.body, now));
    } catch (const Error& error) {
      request.answer(error_answer(error));
    }
  }

  void hear(const WorkerSays& says, Moment now) {
    if (const auto* report = std::get_if<Report>(&says.message); report && options.on_report) {
      if (state.workers.contains(says.worker)) record([this, event = report->event] { options.on_report(event); });
    }
    step(says, now);
    if (const auto* progress = std::get_if<Progress>(&says.message)) measure(says.worker, *progress, now);
  }

  void hear(const Deposed& event, Moment) { step_down(event.term); }

  void step_down(Term higher) {
    if (finished || higher <= options.term) return;
    deposed = true;
    finished =
        Finish{ExitCode::failed, fmt::format("coordinator {} was chosen meanwhile, and goes on with the job", higher)};
  }

  void hear(const auto& event, Moment now) { step(event, now); }

  void measure(WorkerId worker, const Progress& progress, Moment now) {
    const bool speaks = state.current && !state.current->members.empty() && state.current->members.front() == worker;
    if (speaks && progress.generation == state.current->number) meter.heard(progress, now.time);
  }

  // The host file.

  // Returns the lines that mean nothing.
  std::vector<std::string> read_host_file(bool by_person, Moment now) {
    HostList list = parse_host_file(read_file(host_file), options.slots);
    tell_problems(list);
    if (list.hosts.empty()) {
      throw UsageError(fmt::format("{} names no host", host_file.string()), "write one host a line into it");
    }
    step(HostsWanted{std::move(list.hosts), by_person, std::move(list.doubtful)}, now);
    return list.problems;
  }

  void watch_host_file(Moment now) {
    std::optional<HostList> list = watcher.poll(now.time);
    if (!list) return;
    tell_problems(*list);
    step(HostsWanted{std::move(list->hosts), false, std::move(list->doubtful)}, now);
  }

  void tell_problems(const HostList& list) {
    for (const std::string& problem : list.problems) {
      say({Say::Kind::warning, fmt::format("{}: {}", host_file.string(), problem), ""});
    }
  }

  // Requests.

  Json answer(const Json& body, Moment now) {
    const std::string& ask = body.at("ask").as_string();
    if (ask == "list") return hosts_list(state, meter, options.logical_shards, now.time);
    if (ask == "drain") return drain(body, now);
    if (ask == "stop") return stop(body, now);
    if (ask == "bandwidth") return Json::object({{"ok", true}});
    if (ask == "edit-hosts") return edit_hosts(body, now);
    if (ask == "hosts-changed") return hosts_changed(now);
    throw UsageError(fmt::format("the coordinator knows no request \"{}\"", ask),
                     "both sides must be of the same version of dtrain");
  }

  Json drain(const Json& body, Moment now) {
    const std::string& name = body.at("host").as_string();
    const auto found = state.hosts.find(name);
    if (found == state.hosts.end()) {
      throw UsageError(fmt::format("the job has no host {}", name), "dtrain hosts list names them");
    }
    step(Drain{name, text_or(body, "reason", "asked for")}, now);
    return Json::object({{"ok", true}});
  }

  Json stop(const Json& body, Moment now) {
    const Json* at_once = body.find("now");
    step(StopAsked{text_or(body, "reason", "asked for"), at_once && at_once->as_bool()}, now);
    return Json::object({{"ok", true}});
  }

  void require_elastic() const {
    if (state.policy.elastic) return;
    throw UsageError("the hosts of this job are fixed", "start it with --elastic to change them while it trains");
  }

  // One writer, so that edits from many machines need no lock.
  Json edit_hosts(const Json& body, Moment now) {
    require_elastic();
    if (!may_write()) {
      throw RemoteError("the coordinator does not reach enough of the job's agents to change anything",
                        "try again in a few seconds");
    }
    const std::string text = file_exists(host_file) ? read_file(host_file) : "";
    write_file_atomic(host_file, edited_hosts(text, body));
    return hosts_changed(now);
  }

  Json hosts_changed(Moment now) {
    require_elastic();
    Json problems = Json::array();
    for (const std::string& problem : read_host_file(true, now)) problems.push_back(problem);
    return Json::object({{"ok", true}, {"problems", std::move(problems)}});
  }

  // What goes out.

  void step(const Event& event, Moment now) {
    if (finished) return;
    Decision decision = decide(std::move(state), event, now.time);
    state = std::move(decision.state);
    act_all(decision.actions, now);
  }

  void act_all(const std::vector<Action>& actions, Moment now) {
    for (const Action& action : actions) {
      std::visit([&](const auto& kind) { act(kind, now); }, action);
    }
  }

  void act(const StartHost& start, Moment) { crew.start_host(start.host); }
  void act(const TryGate& gate, Moment) { crew.try_gate(gate.host); }
  void act(const StartWorker& start, Moment) { crew.start_worker(start.host, start.slot, start.worker); }
  void act(const Send& send, Moment) { crew.send_all(send.to, send.message); }
  void act(const KillWorker& kill, Moment) { crew.kill_worker(kill.worker, kill.dump_stack); }
  void act(const EndHost& end, Moment) {
    if (state.ending && state.ending->stage == Ending::Stage::agents) leads_to_the_end |= may_write();
    crew.end_host(end.host);
  }
  void act(const TellCircle& circle, Moment) { crew.tell_circle(circle.generation, circle.committed, circle.members); }
  void act(const ClaimNext& claim, Moment now) {
    try {
      const ClaimAnswered answered{claim.generation, claim_generation(options.folder, claim.generation, claim_owner)};
      inbox.push_back([this, answered, now] { step(answered, now); });
    } catch (const Error& error) {
      complain(error);
    }
  }
  void act(const LogMembership& line, Moment now) {
    record([this, line, now] { member_log.append(line.added, line.host, now.wall); });
  }
  void act(const JournalEntry& entry, Moment) {
    record([this, entry] { journal.append(entry); });
  }
  void act(const Emit& emit, Moment now) { write_event(emit.event, now); }
  void act(const Say& line, Moment) { say(line); }
  void act(const Finish& finish, Moment now) {
    finished = finish;
    write_event(
        Json::object(
            {{"event", "goodput"}, {"percent", 100 * meter.goodput(now.time)}, {"samples_seen", meter.samples_seen()}}),
        now);
    if (options.prometheus) write_metrics(now);
  }

  void write_event(const Json& event, Moment now) {
    record([this, event, now] {
      const Json written = events.append(event, now.wall);
      if (options.on_event) options.on_event(written);
    });
  }

  void say(const Say& line) {
    if (options.on_say) options.on_say(line);
  }

  // While it is not certain that no other coordinator is in charge, records wait.
  bool may_write() const {
    if (deposed) return false;
    if (leads_to_the_end) return true;
    const Time since = clock.time - options.lease;
    return leads(state, [&](const auto& hosts) { return crew.answered_since(hosts, since); });
  }

  void record(std::function<void()> write) {
    write_deferred();
    if (deferred.empty() && may_write()) return write_now(write);
    if (deferred.size() >= kMostDeferred) deferred.pop_front();
    deferred.push_back(std::move(write));
  }

  void write_deferred() {
    if (deferred.empty() || !may_write()) return;
    for (const auto& write : std::exchange(deferred, {})) write_now(write);
  }

  // A full disk must not end a job that trains: each complaint is said once, and the job goes on.
  void write_now(const std::function<void()>& write) {
    try {
      write();
    } catch (const Error& error) {
      complain(error);
    }
  }

  void complain(const Error& error) {
    if (!complaints.insert(error.what()).second) return;
    say({Say::Kind::warning, error.what(), "the job goes on, and writes what is missing as soon as it can"});
  }

  void catch_up(Moment now) {
    if (deposed || now.time < catch_up_due) return;
    catch_up_due = now.time + kCatchUpInterval;
    bool is_behind = false;
    for (GrowingFile* file : {&member_log.file(), &events.file(), &journal.file()}) {
      if (file->is_behind()) record([&] { file->catch_up(); });
      is_behind |= file->is_behind();
    }
    if (!std::exchange(was_behind, is_behind) || is_behind) return;
    complaints.clear();
    say({Say::Kind::note, fmt::format("{} can be written again: its records are complete", options.folder.string()),
         ""});
  }

  void write_metrics(Moment now) {
    metrics_due = now.time + kMetricsInterval;
    if (!may_write()) return;
    write_now([&] { write_file_atomic(options.folder / "metrics.prom", prometheus_text(state, meter, now.time)); });
  }

  const CoordinatorOptions options;
  Crew& crew;
  const Path host_file;
  HostFileWatcher watcher;
  MemberLog member_log;
  EventLog events;
  GenerationJournal journal;
  State state;
  JobMeter meter;
  std::optional<Finish> finished;
  std::deque<std::function<void()>> inbox;
  bool busy = false;  // with the front of the inbox
  bool begun = false;
  Time metrics_due{}, catch_up_due{};
  std::set<std::string> complaints;  // about records
  bool was_behind = false;           // with writing them
  Moment clock;                      // of what is being dealt with
  const std::string claim_owner;
  std::optional<Decision> first;  // of a takeover
  Orders orders;                  // to the coordinators before this one
  std::deque<std::function<void()>> deferred;
  bool deposed = false;
  bool leads_to_the_end = false;  // it was in charge when it ended the agents, so none is left to choose another
};

Coordinator::Coordinator(CoordinatorOptions options, Crew& crew, Moment now)
    : impl_(std::make_unique<Impl>(std::move(options), crew, now)) {}
Coordinator::~Coordinator() = default;

void Coordinator::feed(CrewEvent event, Moment now) {
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
void Coordinator::step_down(Term higher) { impl_->step_down(higher); }
bool Coordinator::deposed() const { return impl_->deposed; }
const std::optional<Finish>& Coordinator::finished() const { return impl_->finished; }
const State& Coordinator::state() const { return impl_->state; }

}  // namespace dtrain::elastic
