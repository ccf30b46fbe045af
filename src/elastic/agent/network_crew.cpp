#include <dtrain/elastic/network_crew.hpp>

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/elastic/agent.hpp>

#include "wire.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using ChannelPtr = std::shared_ptr<net::Channel>;

// A peer that proved the token says at once what it wants.
constexpr auto kFirstFrameDeadline = 10s;
constexpr std::size_t kTreeBytes = 8;

}  // namespace

// Callbacks hold weak pointers to it: nothing arrives once the crew is gone.
struct NetworkCrew::State : std::enable_shared_from_this<State> {
  struct Host {
    std::string tree;  // of its last start
    ChannelPtr agent;  // null: did not join yet
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
    welcome = encode(Tag::welcome, 0,
                     to_json(Welcome{options.environment, options.folder.string(), options.job,
                                     static_cast<bool>(options.on_output)})
                         .dump());
  }

  void listen() {
    listener.emplace(loop, options.bind_address, options.token, [weak = weak_from_this()](ChannelPtr channel) {
      if (auto self = weak.lock()) self->receive_visitor(std::move(channel));
    });
  }

  // Events are for later: the coordinator must not be called from within its own calls.
  void later(CrewEvent event) {
    loop.post([weak = weak_from_this(), event = std::move(event)] {
      if (auto self = weak.lock()) self->on_event(event);
    });
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
    if (event) on_event(std::move(*event));
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
    const Joined joined = joined_from_json(Json::parse(frame.body, "an agent's first message"));
    const auto found = hosts.find(joined.host);
    if (found == hosts.end() || found->second.tree != joined.tree || found->second.agent) {
      visitors.erase(visitor.channel.get());  // of an earlier start: it ends when its channel closes
      return std::nullopt;
    }
    visitor.known = true;
    visitor.host = joined.host;
    found->second.agent = visitor.channel;
    visitor.channel->send(welcome);
    return HostUp{joined.host, visitor.channel->peer_address()};
  }

  std::optional<CrewEvent> hear_agent(const std::string& host, const AgentFrame& frame) {
    const auto found = workers.find(frame.worker);
    if (found == workers.end() || found->second.host != host) return std::nullopt;
    if (frame.tag == Tag::say) return hear_worker(frame.worker, frame.body);
    if (frame.tag == Tag::output) show(found->second, frame.body);
    if (frame.tag != Tag::exited) return std::nullopt;
    workers.erase(found);
    Exited exited = exited_from_json(Json::parse(frame.body, "an agent's report"));
    return WorkerExited{frame.worker, exited.exit_code, exited.signal, std::move(exited.last_lines)};
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
      const auto end = lines.find('\n');
      options.on_output(worker.host, worker.slot, lines.substr(0, end));
      lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
    }
  }

  void visitor_gone(net::Channel* key, const std::string& reason) {
    const auto found = visitors.find(key);
    if (found == visitors.end()) return;
    const std::string host = found->second.host;
    visitors.erase(found);
    if (!host.empty() && forget_host(host)) on_event(HostDown{host, reason});
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
    std::erase_if(workers, [&](const auto& entry) { return entry.second.host == host; });
    return true;
  }

  void start_host(const HostLine& line) {
    forget_host(line.name);
    const std::string tree = to_hex(unpredictable_bytes(kTreeBytes));
    hosts[line.name] = {.tree = tree, .agent = nullptr};
    try {
      launcher.start(
          line, {listener->address(), listener->port(), options.token, line.name, options.job_folder.string(), tree});
    } catch (const Error& error) {
      return lose_host(line.name, error.what());
    }
    loop.after(options.join_deadline, [weak = weak_from_this(), host = line.name, tree] {
      if (auto self = weak.lock()) self->give_up_start(host, tree);
    });
  }

  void give_up_start(const std::string& host, const std::string& tree) {
    const auto found = hosts.find(host);
    if (found == hosts.end() || found->second.tree != tree || found->second.agent) return;
    lose_host(host, fmt::format("its agent did not join within {} s",
                                std::chrono::duration_cast<std::chrono::seconds>(options.join_deadline).count()));
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

  net::Loop& loop;
  AgentLauncher& launcher;
  NetworkCrewOptions options;
  std::function<void(CrewEvent)> on_event;
  std::string welcome;
  std::optional<net::Listener> listener;
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

}  // namespace dtrain::elastic
