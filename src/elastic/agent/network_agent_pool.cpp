// The coordinator's end of the connections to its agents and to commands. Everything happens on the loop's thread, so
// there is no lock; only a launcher's `failed` callback may come from another thread, and it posts to the loop.
// Callbacks hold weak pointers to Impl, so nothing arrives after the pool is destroyed.
//
// A connection is pending until its first frame tells what it is. A host has at most one agent, marked by the `tree` of
// its last start. An agent is lost when its connection closes or after `silence`; that reports HostDown, and its
// workers are lost with it. While agents are collected for a takeover, events wait in the collector, and a lost agent
// only takes its report back.
#include <dtrain/elastic/network_agent_pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/agent.hpp>

#include "agent_collector.hpp"
#include "contacts.hpp"
#include "welcome.hpp"
#include "wire.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using ChannelPtr = std::shared_ptr<net::Channel>;

constexpr auto kFirstFrameDeadline = 10s;  // a peer that has proved the token sends it at once
constexpr std::size_t kTreeBytes = 8;
constexpr auto kBeat = 500ms;

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

struct NetworkAgentPool::Impl : std::enable_shared_from_this<Impl> {
  struct Host {
    std::string tree;          // of its last start
    ChannelPtr agent;          // null: has not joined yet
    std::uint64_t frames = 0;  // received frames that the agent keeps until it knows that they arrived
  };
  struct Worker {
    std::string host;
    int slot = 0;
  };
  struct PendingConnection {  // a connection that has proved the token
    ChannelPtr channel;
    bool known = false;  // its first frame has come
    std::string host;    // of an agent
  };

  Impl(net::Loop& where, AgentLauncher& starter, NetworkAgentPoolOptions chosen,
       std::function<void(AgentPoolEvent)> handler)
      : loop(where), launcher(starter), options(std::move(chosen)), on_event(std::move(handler)) {
    options.job_folder = std::filesystem::absolute(options.job_folder);
    if (!options.environment) options.environment = own_environment();
    if (options.folder.empty()) options.folder = std::filesystem::current_path();
  }

  void listen() {
    listener.emplace(loop, options.bind_address, options.token, [weak = weak_from_this()](ChannelPtr channel) {
      if (auto self = weak.lock()) self->receive_connection(std::move(channel));
    });
    if (options.silence.count() > 0) beat();
  }

  void send_signs_of_life() {
    const std::uint64_t number = contacts.beat(now());
    for (const auto& [name, host] : hosts) {
      if (host.agent) host.agent->send(encode(Tag::alive, 0, fmt::format("{} {}", number, host.frames)));
    }
  }

  // Sends a sign of life to all agents, and drops those that are silent for too long.
  void beat() {
    send_signs_of_life();
    const double limit = std::chrono::duration<double>(options.silence).count();
    for (const std::string& name : contacts.silent(options.silence, now()))
      lose_host(name, fmt::format("nothing was heard of its agent for {:.1f} s", limit));
    loop.after(kBeat, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->beat();
    });
  }

  // Events wait for the loop: the coordinator must not be called from within its own calls.
  void later(AgentPoolEvent event) {
    loop.post([weak = weak_from_this(), event = std::move(event)] {
      if (auto self = weak.lock()) self->deliver(event);
    });
  }

  void deliver(AgentPoolEvent event) {
    if (collector) {
      collector->keep_for_later(std::move(event));
    } else {
      on_event(std::move(event));
    }
  }

  // The first frame tells whether the connection is an agent's or a command's.
  void receive_connection(ChannelPtr channel) {
    net::Channel* key = channel.get();
    connections[key] = {channel, false, ""};
    channel->listen({.on_frame =
                         [weak = weak_from_this(), key](std::string frame) {
                           if (auto self = weak.lock()) self->hear(key, std::move(frame));
                         },
                     .on_close =
                         [weak = weak_from_this(), key](const std::string& reason) {
                           if (auto self = weak.lock()) self->connection_gone(key, reason);
                         }});
    loop.after(kFirstFrameDeadline, [weak = weak_from_this(), key, channel = std::weak_ptr(channel)] {
      const auto self = weak.lock();
      if (!self || channel.expired()) return;
      const auto found = self->connections.find(key);
      if (found != self->connections.end() && !found->second.known) self->connections.erase(found);
    });
  }

  // Only errors in the peer's bytes close the connection; an error of the coordinator itself passes through.
  void hear(net::Channel* key, std::string bytes) {
    const auto found = connections.find(key);
    if (found == connections.end()) return;
    std::optional<AgentPoolEvent> event;
    try {
      event = understand(found->second, std::move(bytes));
    } catch (const DataError& error) {
      return connection_gone(key, fmt::format("it sent an invalid message: {}", error.what()));
    }
    if (event) deliver(std::move(*event));
  }

  std::optional<AgentPoolEvent> understand(PendingConnection& connection, std::string bytes) {
    if (!connection.host.empty()) return hear_agent(connection.host, decode(std::move(bytes)));
    if (!bytes.empty() && bytes[0] == static_cast<char>(Tag::join)) return join(connection, decode(std::move(bytes)));
    connection.known = true;
    const std::weak_ptr<net::Channel> channel = connection.channel;
    Json request = Json::parse(bytes, "a request");
    if (!request.is_object()) throw DataError("a request is a JSON object");
    return Request{std::move(request), [channel](const Json& answer) {
                     if (auto open = channel.lock()) open->send(answer.dump());
                   }};
  }

  std::optional<AgentPoolEvent> join(PendingConnection& connection, const AgentFrame& frame) {
    JoinRequest request = join_request_from_json(Json::parse(frame.body, "an agent's first message"));
    if (request.term > options.term) return StaleTerm{request.term};
    lose_broken_connection(request);
    if (!may_join(request)) {
      connection.channel->send(encode(Tag::end, 0, ""));
      connection.channel->close_after_sending();
      connections.erase(connection.channel.get());
      return std::nullopt;
    }
    connection.known = true;
    connection.host = request.host;
    const std::string address = connection.channel->peer_address();
    hosts[request.host] = {.tree = request.tree, .agent = connection.channel};
    contacts.add({request.host, request.tree, {address, request.port}}, request.term == 0, now());
    if (collector) {
      take_report({request.host, address, std::move(request.voters), std::move(request.workers)}, connection.channel);
      return std::nullopt;
    }
    connection.channel->send(welcome_frame(options, {}));
    return HostUp{request.host, address};
  }

  // The agent reconnects before this process notices that the old connection is lost.
  void lose_broken_connection(const JoinRequest& request) {
    const auto found = hosts.find(request.host);
    if (found == hosts.end() || !found->second.agent || found->second.tree != request.tree) return;
    forget_host(request.host);
    if (collector) return collector->drop(request.host);
    on_event(HostDown{request.host, "its agent connected again"});
  }

  // Accept the agent of the current launch, or one that reconnects; a launch still in progress is then redundant.
  bool may_join(const JoinRequest& request) const {
    const auto found = hosts.find(request.host);
    const bool there = found != hosts.end() && found->second.agent;
    const bool of_this_start = found != hosts.end() && found->second.tree == request.tree;
    return !there && (of_this_start || (options.outlive && request.term > 0));
  }

  std::optional<AgentPoolEvent> hear_agent(const std::string& name, const AgentFrame& frame) {
    contacts.heard(name, now());
    if (frame.tag == Tag::alive) contacts.answered(name, number_of(frame.body));
    if (std::optional<AgentPoolEvent> of_host = event_of_host(name, frame)) return of_host;
    if (frame.tag == Tag::say || frame.tag == Tag::exited) ++hosts.at(name).frames;
    const auto found = workers.find(frame.worker);
    if (found == workers.end() || found->second.host != name) return std::nullopt;
    if (frame.tag == Tag::say) return hear_worker(frame.worker, frame.body);
    if (frame.tag == Tag::output) show(found->second, OutputStream::output, frame.body);
    if (frame.tag == Tag::error) show(found->second, OutputStream::error, frame.body);
    if (frame.tag != Tag::exited) return std::nullopt;
    workers.erase(found);
    Exited exited = exited_from_json(Json::parse(frame.body, "an agent's report"));
    return WorkerExited{frame.worker, exited.exit_code, exited.signal, std::move(exited.last_lines), exited.started};
  }

  // Collecting agents, for a coordinator that takes over.

  void collect_agents(const ElectionResult& election, CollectTimes times, AgentCollector::Done done) {
    for (const VoterSet& voter_set : election.voter_sets) {
      for (const Voter& agent : voter_set.voters) hosts[agent.host] = {.tree = agent.tree, .agent = nullptr};
    }
    collector = std::make_shared<AgentCollector>(
        loop, election, times, [this] { end_collecting(); }, std::move(done));
    collector->start();
  }

  void take_report(HostReport report, const ChannelPtr& agent) {
    std::vector<WorkerId> keep;
    for (const WorkerReport& worker : report.workers) {
      workers[worker.worker] = {report.host, worker.slot};
      keep.push_back(worker.worker);
    }
    agent->send(welcome_frame(options, std::move(keep)));
    collector->take(std::move(report));
  }

  // Hosts whose agents did not come count as never started. The others get a sign of life at once: nothing is recorded
  // before they have answered, and a job may end before the next beat.
  void end_collecting() {
    send_signs_of_life();
    const auto ended = std::exchange(collector, nullptr);
    std::erase_if(hosts, [](const auto& entry) { return !entry.second.agent; });
    ended->end(on_event);
  }

  // A worker that sends an invalid message is killed.
  std::optional<AgentPoolEvent> hear_worker(WorkerId worker, const std::string& body) {
    try {
      return WorkerSays{worker, from_worker_from_json(Json::parse(body, "a worker's message"))};
    } catch (const DataError&) {
      send_frame(worker, Tag::kill, "");
      return std::nullopt;
    }
  }

  void show(const Worker& worker, OutputStream stream, std::string_view lines) {
    while (options.on_output && !lines.empty()) {
      const auto end = std::min(lines.find('\n'), lines.size());
      options.on_output(worker.host, worker.slot, stream, lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }

  void connection_gone(net::Channel* key, const std::string& reason) {
    const auto found = connections.find(key);
    if (found == connections.end()) return;
    const std::string host = found->second.host;
    connections.erase(found);
    if (host.empty() || !forget_host(host)) return;
    if (collector) return collector->drop(host);
    on_event(HostDown{host, reason});
  }

  void lose_host(const std::string& host, const StartFailure& failure, bool is_own_fault = false) {
    if (!forget_host(host)) return;
    if (collector) return collector->drop(host);
    later(HostDown{host, failure.reason, is_own_fault, failure.forget_key});
  }

  // Closing its channel ends an agent that does not outlive its coordinator.
  bool forget_host(const std::string& host) {
    const auto found = hosts.find(host);
    if (found == hosts.end()) return false;
    if (found->second.agent) connections.erase(found->second.agent.get());
    hosts.erase(found);
    contacts.remove(host);
    std::erase_if(workers, [&](const auto& entry) { return entry.second.host == host; });
    return true;
  }

  void start_host(const HostLine& line) {
    forget_host(line.name);
    const std::string tree = to_hex(unpredictable_bytes(kTreeBytes));
    hosts[line.name] = {.tree = tree, .agent = nullptr};
    const AgentOrder order{listener->address(),         {},   listener->port(), options.token, line.name,
                           options.job_folder.string(), tree, options.term};
    auto failed = [weak = weak_from_this(), &where = loop, host = line.name, tree](StartFailure failure) {
      where.post([weak, host, tree, failure = std::move(failure)] {
        if (auto self = weak.lock()) self->give_up_start(host, tree, failure);
      });
    };
    try {
      launcher.start(line, order, std::move(failed));
    } catch (const Error& error) {
      return lose_host(line.name, {error.what()}, error.exit_code() == ExitCode::failed);
    }
    loop.after(options.join_deadline, [weak = weak_from_this(), host = line.name, tree] {
      const auto self = weak.lock();
      if (!self) return;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(self->options.join_deadline);
      self->give_up_start(host, tree, fmt::format("its agent did not join within {} s", seconds.count()));
    });
  }

  void give_up_start(const std::string& host, const std::string& tree, const StartFailure& failure) {
    const auto found = hosts.find(host);
    if (found == hosts.end() || found->second.tree != tree || found->second.agent) return;
    lose_host(host, failure);
  }

  void run_admission_check(const std::string& name) {
    const auto host = hosts.find(name);
    if (host == hosts.end() || !host->second.agent) return;
    AdmissionCheckOptions check = options.admission_check;
    check.asked_at =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    host->second.agent->send(encode(Tag::check, 0, to_json(check).dump()));
  }

  void start_worker(const std::string& host, int slot, WorkerId worker) {
    const auto found = hosts.find(host);
    if (found == hosts.end() || !found->second.agent)
      return later(WorkerExited{worker, 127, 0, {"its host is not up"}, false});
    workers[worker] = {host, slot};
    send_frame(worker, Tag::start, std::to_string(slot));
  }

  void send_frame(WorkerId worker, Tag tag, std::string_view body) {
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

  void announce_voters(Generation generation, bool committed, const std::vector<Member>& members) {
    if (!options.outlive) return;
    const VoterNotice notice{committed, {generation, contacts.voters_of(members), members}};
    const std::string frame = encode(Tag::voters, 0, to_json(notice).dump());
    for (const auto& [name, host] : hosts) {
      if (host.agent) host.agent->send(frame);
    }
  }

  net::Loop& loop;
  AgentLauncher& launcher;
  NetworkAgentPoolOptions options;
  std::function<void(AgentPoolEvent)> on_event;
  std::optional<net::Listener> listener;
  Contacts contacts;
  std::shared_ptr<AgentCollector> collector;
  std::map<net::Channel*, PendingConnection> connections;
  std::map<std::string, Host> hosts;
  std::map<WorkerId, Worker> workers;
};

NetworkAgentPool::NetworkAgentPool(net::Loop& loop, AgentLauncher& launcher, NetworkAgentPoolOptions options,
                                   std::function<void(AgentPoolEvent)> on_event)
    : impl_(std::make_shared<Impl>(loop, launcher, std::move(options), std::move(on_event))) {
  impl_->listen();
}
NetworkAgentPool::~NetworkAgentPool() = default;

std::string NetworkAgentPool::address() const { return impl_->listener->address(); }
std::uint16_t NetworkAgentPool::port() const { return impl_->listener->port(); }

void NetworkAgentPool::start_host(const HostLine& host) { impl_->start_host(host); }
void NetworkAgentPool::run_admission_check(const std::string& host) { impl_->run_admission_check(host); }
void NetworkAgentPool::start_worker(const std::string& host, int slot, WorkerId worker) {
  impl_->start_worker(host, slot, worker);
}
void NetworkAgentPool::send(WorkerId worker, const ToWorker& message) { send_all({worker}, message); }
void NetworkAgentPool::send_all(const std::vector<WorkerId>& workers, const ToWorker& message) {
  const std::string text = to_json(message).dump();
  for (const WorkerId worker : workers) impl_->send_frame(worker, Tag::say, text);
}
void NetworkAgentPool::kill_worker(WorkerId worker, bool dump_stack) {
  impl_->send_frame(worker, Tag::kill, dump_stack ? "dump" : "");
}
void NetworkAgentPool::end_host(const std::string& host) { impl_->end_host(host); }
void NetworkAgentPool::announce_voters(Generation generation, bool committed, const std::vector<Member>& members) {
  impl_->announce_voters(generation, committed, members);
}
std::size_t NetworkAgentPool::answered_since(const std::vector<std::string>& names,
                                             std::chrono::steady_clock::time_point since) const {
  return impl_->contacts.answered_since(names, since);
}
void NetworkAgentPool::collect_agents(const ElectionResult& election, CollectTimes times,
                                      std::function<void(std::vector<HostReport>)> done) {
  impl_->collect_agents(election, times, std::move(done));
}

}  // namespace dtrain::elastic
