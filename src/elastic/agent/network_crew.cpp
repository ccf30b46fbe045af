#include <dtrain/elastic/network_crew.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/agent.hpp>

#include "contacts.hpp"
#include "gathering.hpp"
#include "welcome.hpp"
#include "wire.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using ChannelPtr = std::shared_ptr<net::Channel>;

// A peer that proved the token says at once what it wants.
constexpr auto kFirstFrameDeadline = 10s;
constexpr std::size_t kTreeBytes = 8;
constexpr auto kBeat = 500ms;

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

// Callbacks hold weak pointers to it: nothing arrives once the crew is gone.
struct NetworkCrew::State : std::enable_shared_from_this<State> {
  struct Host {
    std::string tree;          // of its last start
    ChannelPtr agent;          // null: did not join yet
    std::uint64_t frames = 0;  // of those that an agent keeps until it knows that they arrived
  };
  struct Worker {
    std::string host;
    int slot = 0;
  };
  struct Visitor {  // whoever connected and proved the token
    ChannelPtr channel;
    bool known = false;  // said what it wants
    std::string host;    // of an agent
  };

  State(net::Loop& where, AgentLauncher& starter, NetworkCrewOptions chosen, std::function<void(CrewEvent)> tell)
      : loop(where), launcher(starter), options(std::move(chosen)), on_event(std::move(tell)) {
    options.job_folder = std::filesystem::absolute(options.job_folder);
    if (options.environment.empty()) options.environment = own_environment();
    if (options.folder.empty()) options.folder = std::filesystem::current_path();
  }

  void listen() {
    listener.emplace(loop, options.bind_address, options.token, [weak = weak_from_this()](ChannelPtr channel) {
      if (auto self = weak.lock()) self->receive_visitor(std::move(channel));
    });
    if (options.silence.count() > 0) beat();
  }

  // Signs of life to all agents, and a look at who gives none.
  void beat() {
    const std::uint64_t number = contacts.beat(now());
    for (const auto& [name, host] : hosts) {
      if (host.agent) host.agent->send(encode(Tag::alive, 0, fmt::format("{} {}", number, host.frames)));
    }
    for (const std::string& name : contacts.silent(options.silence, now())) {
      lose_host(name, fmt::format("nothing was heard of its agent for {:.1f} s",
                                  std::chrono::duration<double>(options.silence).count()));
    }
    loop.after(kBeat, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->beat();
    });
  }

  // Events are for later: the coordinator must not be called from within its own calls.
  void later(CrewEvent event) {
    loop.post([weak = weak_from_this(), event = std::move(event)] {
      if (auto self = weak.lock()) self->tell_event(event);
    });
  }

  void tell_event(CrewEvent event) {
    if (gathering) {
      gathering->keep_for_later(std::move(event));
    } else {
      on_event(std::move(event));
    }
  }

  // An agent or a command, as its first frame tells.
  void receive_visitor(ChannelPtr channel) {
    net::Channel* key = channel.get();
    visitors[key] = {channel, false, ""};
    channel->listen({.on_frame =
                         [weak = weak_from_this(), key](std::string frame) {
                           if (auto self = weak.lock()) self->hear(key, std::move(frame));
                         },
                     .on_close =
                         [weak = weak_from_this(), key](const std::string& reason) {
                           if (auto self = weak.lock()) self->visitor_gone(key, reason);
                         }});
    loop.after(kFirstFrameDeadline, [weak = weak_from_this(), key, channel = std::weak_ptr(channel)] {
      const auto self = weak.lock();
      if (!self || channel.expired()) return;
      const auto found = self->visitors.find(key);
      if (found != self->visitors.end() && !found->second.known) self->visitors.erase(found);
    });
  }

  // Only what the peer sent is judged here: an error of the coordinator's own must not look like the peer's.
  void hear(net::Channel* key, std::string bytes) {
    const auto found = visitors.find(key);
    if (found == visitors.end()) return;
    std::optional<CrewEvent> event;
    try {
      event = understand(found->second, std::move(bytes));
    } catch (const DataError& error) {
      return visitor_gone(key, fmt::format("it sends what is no message: {}", error.what()));
    }
    if (event) tell_event(std::move(*event));
  }

  std::optional<CrewEvent> understand(Visitor& visitor, std::string bytes) {
    if (!visitor.host.empty()) return hear_agent(visitor.host, decode(std::move(bytes)));
    if (!bytes.empty() && bytes[0] == static_cast<char>(Tag::join)) return join(visitor, decode(std::move(bytes)));
    visitor.known = true;
    const std::weak_ptr<net::Channel> channel = visitor.channel;
    return Request{Json::parse(bytes, "a request"), [channel](const Json& answer) {
                     if (auto open = channel.lock()) open->send(answer.dump());
                   }};
  }

  std::optional<CrewEvent> join(Visitor& visitor, const AgentFrame& frame) {
    Joined joined = joined_from_json(Json::parse(frame.body, "an agent's first message"));
    if (joined.term > options.term) return Deposed{joined.term};
    lose_broken_connection(joined);
    if (!may_join(joined)) {
      visitor.channel->send(encode(Tag::end, 0, ""));
      visitor.channel->close_after_sending();
      visitors.erase(visitor.channel.get());
      return std::nullopt;
    }
    visitor.known = true;
    visitor.host = joined.host;
    const std::string address = visitor.channel->peer_address();
    hosts[joined.host] = {.tree = joined.tree, .agent = visitor.channel};
    contacts.add({joined.host, joined.tree, {address, joined.port}}, joined.term == 0, now());
    if (gathering) {
      take_report({joined.host, address, std::move(joined.circles), std::move(joined.workers)}, visitor.channel);
      return std::nullopt;
    }
    visitor.channel->send(welcome_frame(options, {}));
    return HostUp{joined.host, address};
  }

  // The agent knows before this process does that its last connection is gone.
  void lose_broken_connection(const Joined& joined) {
    const auto found = hosts.find(joined.host);
    if (found == hosts.end() || !found->second.agent || found->second.tree != joined.tree) return;
    forget_host(joined.host);
    if (gathering) return gathering->drop(joined.host);
    on_event(HostDown{joined.host, "its agent connected again"});
  }

  // Of this start, or one that was lost and comes back: one that may be on its way is not needed any more.
  bool may_join(const Joined& joined) const {
    const auto found = hosts.find(joined.host);
    const bool there = found != hosts.end() && found->second.agent;
    const bool of_this_start = found != hosts.end() && found->second.tree == joined.tree;
    return !there && (of_this_start || (options.outlive && joined.term > 0));
  }

  std::optional<CrewEvent> hear_agent(const std::string& name, const AgentFrame& frame) {
    contacts.heard(name, now());
    if (frame.tag == Tag::alive) contacts.answered(name, number_of(frame.body));
    if (std::optional<CrewEvent> of_host = event_of_host(name, frame)) return of_host;
    if (frame.tag == Tag::say || frame.tag == Tag::exited) ++hosts.at(name).frames;
    const auto found = workers.find(frame.worker);
    if (found == workers.end() || found->second.host != name) return std::nullopt;
    if (frame.tag == Tag::say) return hear_worker(frame.worker, frame.body);
    if (frame.tag == Tag::output) show(found->second, frame.body);
    if (frame.tag != Tag::exited) return std::nullopt;
    workers.erase(found);
    Exited exited = exited_from_json(Json::parse(frame.body, "an agent's report"));
    return WorkerExited{frame.worker, exited.exit_code, exited.signal, std::move(exited.last_lines)};
  }

  // A coordinator that takes over.

  void gather(const std::vector<Circle>& circles, std::chrono::milliseconds wait, Gathering::Done done) {
    std::set<std::string> awaited;
    for (const Circle& circle : circles) {
      for (const CircleAgent& agent : circle.agents) {
        hosts[agent.host] = {.tree = agent.tree, .agent = nullptr};
        awaited.insert(agent.host);
      }
    }
    gathering.emplace(std::move(awaited), std::move(done));
    look_at_gathering(wait, 3);
  }

  void look_at_gathering(std::chrono::milliseconds wait, int rounds) {
    loop.after(wait, [weak = weak_from_this(), wait, rounds] {
      const auto self = weak.lock();
      if (!self || !self->gathering) return;
      if (!self->gathering->has_half() && rounds > 1) return self->look_at_gathering(wait, rounds - 1);
      self->end_gathering();
    });
  }

  void take_report(HostReport report, const ChannelPtr& agent) {
    std::vector<WorkerId> keep;
    for (const WorkerReport& worker : report.workers) {
      workers[worker.worker] = {report.host, worker.slot};
      keep.push_back(worker.worker);
    }
    agent->send(welcome_frame(options, std::move(keep)));
    gathering->take(std::move(report));
    if (gathering->is_complete()) end_gathering();
  }

  // Who did not come is as good as never started.
  void end_gathering() {
    Gathering ended = std::move(*std::exchange(gathering, std::nullopt));
    std::erase_if(hosts, [](const auto& entry) { return !entry.second.agent; });
    ended.end(on_event);
  }

  // A worker that talks nonsense is not one of ours any more.
  std::optional<CrewEvent> hear_worker(WorkerId worker, const std::string& body) {
    try {
      return WorkerSays{worker, from_worker_from_json(Json::parse(body, "a worker's message"))};
    } catch (const DataError&) {
      tell(worker, Tag::kill, "");
      return std::nullopt;
    }
  }

  void show(const Worker& worker, std::string_view lines) {
    while (options.on_output && !lines.empty()) {
      const auto end = std::min(lines.find('\n'), lines.size());
      options.on_output(worker.host, worker.slot, lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }

  void visitor_gone(net::Channel* key, const std::string& reason) {
    const auto found = visitors.find(key);
    if (found == visitors.end()) return;
    const std::string host = found->second.host;
    visitors.erase(found);
    if (!host.empty() && forget_host(host)) tell_event(HostDown{host, reason});
  }

  void lose_host(const std::string& host, const std::string& reason) {
    if (forget_host(host)) later(HostDown{host, reason});
  }

  // Its agent ends when its channel closes.
  bool forget_host(const std::string& host) {
    const auto found = hosts.find(host);
    if (found == hosts.end()) return false;
    if (found->second.agent) visitors.erase(found->second.agent.get());
    hosts.erase(found);
    contacts.remove(host);
    std::erase_if(workers, [&](const auto& entry) { return entry.second.host == host; });
    return true;
  }

  void start_host(const HostLine& line) {
    forget_host(line.name);
    const std::string tree = to_hex(unpredictable_bytes(kTreeBytes));
    hosts[line.name] = {.tree = tree, .agent = nullptr};
    try {
      launcher.start(line,
                     {listener->address(),
                      {},
                      listener->port(),
                      options.token,
                      line.name,
                      options.job_folder.string(),
                      tree,
                      options.term},
                     [weak = weak_from_this(), &where = loop, host = line.name, tree](std::string reason) {
                       where.post([weak, host, tree, reason = std::move(reason)] {
                         if (auto self = weak.lock()) self->give_up_start(host, tree, reason);
                       });
                     });
    } catch (const Error& error) {
      return lose_host(line.name, error.what());
    }
    loop.after(options.join_deadline, [weak = weak_from_this(), host = line.name, tree] {
      const auto self = weak.lock();
      if (!self) return;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(self->options.join_deadline);
      self->give_up_start(host, tree, fmt::format("its agent did not join within {} s", seconds.count()));
    });
  }

  void give_up_start(const std::string& host, const std::string& tree, const std::string& reason) {
    const auto found = hosts.find(host);
    if (found == hosts.end() || found->second.tree != tree || found->second.agent) return;
    lose_host(host, reason);
  }

  void try_gate(const std::string& name) {
    const auto host = hosts.find(name);
    if (host == hosts.end() || !host->second.agent) return;
    GateOptions gate = options.gate;
    gate.asked_at =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    host->second.agent->send(encode(Tag::gate, 0, to_json(gate).dump()));
  }

  void start_worker(const std::string& host, int slot, WorkerId worker) {
    const auto found = hosts.find(host);
    if (found == hosts.end() || !found->second.agent)
      return later(WorkerExited{worker, 127, 0, {"its host is not up"}});
    workers[worker] = {host, slot};
    tell(worker, Tag::start, std::to_string(slot));
  }

  void tell(WorkerId worker, Tag tag, std::string_view body) {
    const auto found = workers.find(worker);
    if (found == workers.end()) return;
    const auto host = hosts.find(found->second.host);
    if (host != hosts.end() && host->second.agent) host->second.agent->send(encode(tag, worker, body));
  }

  void end_host(const std::string& name) {
    const auto host = hosts.find(name);
    if (host == hosts.end()) return;
    if (host->second.agent) return host->second.agent->send(encode(Tag::end, 0, ""));
    lose_host(name, "ended before it joined");
  }

  void tell_circle(Generation generation, bool committed, const std::vector<Member>& members) {
    if (!options.outlive) return;
    const CircleNotice notice{committed, {generation, contacts.agents_of(members), members}};
    const std::string frame = encode(Tag::circle, 0, to_json(notice).dump());
    for (const auto& [name, host] : hosts) {
      if (host.agent) host.agent->send(frame);
    }
  }

  net::Loop& loop;
  AgentLauncher& launcher;
  NetworkCrewOptions options;
  std::function<void(CrewEvent)> on_event;
  std::optional<net::Listener> listener;
  Contacts contacts;
  std::optional<Gathering> gathering;
  std::map<net::Channel*, Visitor> visitors;
  std::map<std::string, Host> hosts;
  std::map<WorkerId, Worker> workers;
};

NetworkCrew::NetworkCrew(net::Loop& loop, AgentLauncher& launcher, NetworkCrewOptions options,
                         std::function<void(CrewEvent)> on_event)
    : state_(std::make_shared<State>(loop, launcher, std::move(options), std::move(on_event))) {
  state_->listen();
}
NetworkCrew::~NetworkCrew() = default;

std::string NetworkCrew::address() const { return state_->listener->address(); }
std::uint16_t NetworkCrew::port() const { return state_->listener->port(); }

void NetworkCrew::start_host(const HostLine& host) { state_->start_host(host); }
void NetworkCrew::try_gate(const std::string& host) { state_->try_gate(host); }
void NetworkCrew::start_worker(const std::string& host, int slot, WorkerId worker) {
  state_->start_worker(host, slot, worker);
}
void NetworkCrew::send(WorkerId worker, const ToWorker& message) { send_all({worker}, message); }
void NetworkCrew::send_all(const std::vector<WorkerId>& workers, const ToWorker& message) {
  const std::string text = to_json(message).dump();
  for (const WorkerId worker : workers) state_->tell(worker, Tag::say, text);
}
void NetworkCrew::kill_worker(WorkerId worker, bool dump_stack) {
  state_->tell(worker, Tag::kill, dump_stack ? "dump" : "");
}
void NetworkCrew::end_host(const std::string& host) { state_->end_host(host); }
void NetworkCrew::tell_circle(Generation generation, bool committed, const std::vector<Member>& members) {
  state_->tell_circle(generation, committed, members);
}
std::size_t NetworkCrew::answered_since(const std::vector<std::string>& names,
                                        std::chrono::steady_clock::time_point since) const {
  return state_->contacts.answered_since(names, since);
}
void NetworkCrew::gather(const std::vector<Circle>& circles, std::chrono::milliseconds wait,
                         std::function<void(std::vector<HostReport>)> done) {
  state_->gather(circles, wait, std::move(done));
}

}  // namespace dtrain::elastic
