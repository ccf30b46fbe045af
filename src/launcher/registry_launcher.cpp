#include <dtrain/launcher/registry_launcher.hpp>

#include <fmt/format.h>

#include <map>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::launcher {
namespace {

constexpr std::chrono::seconds kConnectDeadline{10};

}  // namespace

// One connection to the head serves all starts: made for the first one, and again after it was lost. start() may be
// called from any thread and only adds to `queued`: a head whose machine is dead lets a connection attempt block for
// kConnectDeadline, and a coordinator that sends no sign of life for so long is replaced by its agents. `sender`
// connects and sends, without holding `mutex` while it connects; the loop's thread takes the answers. Both call
// `Failed`, without holding `mutex`. If no connection is made, all starts that are queued by then fail; if it is lost,
// all that wait for an answer do. The destructor ends `sender` first, after at most kConnectDeadline, then the loop, so
// no `Failed` is called after it.
struct RegistryLauncher::State {
  struct Start {
    std::string host;
    elastic::AgentOrder order;
    Failed failed;
  };

  State(AgentRegistry where, std::string announced) : registry(std::move(where)), announce(std::move(announced)) {
    sender = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  void add(Start start) {
    const MutexLock lock(mutex);
    queued.push_back(std::move(start));
    wake.notify_one();
  }

  void work(const std::stop_token& stop) {
    MutexLock lock(mutex);
    while (wake.wait(mutex, stop, [this]() DTRAIN_REQUIRES(mutex) { return !queued.empty(); }) &&
           !stop.stop_requested()) {
      if (!channel) {
        lock.unlock();
        std::shared_ptr<net::Channel> made = connect();
        lock.lock();
        if (!made) continue;
        channel = std::move(made);
        channel->listen({.on_frame = [this](const std::string& frame) { hear(frame); },
                         .on_close = [this](const std::string& reason) { lose(reason); }});
      }
      send_queued();
    }
  }

  // nullptr: the head cannot be reached, and the queued starts have failed.
  std::shared_ptr<net::Channel> connect() {
    try {
      return net::connect_channel(loop.loop(), registry.address, registry.port, registry.token, kConnectDeadline);
    } catch (const Error& error) {
      for (const Start& start : take_queued()) {
        start.failed(fmt::format("the head of cluster {} cannot be asked to start its agent: {}", registry.cluster,
                                 error.what()));
      }
      return nullptr;
    }
  }

  std::vector<Start> take_queued() {
    const MutexLock lock(mutex);
    return std::exchange(queued, {});
  }

  void send_queued() DTRAIN_REQUIRES(mutex) {
    for (Start& start : std::exchange(queued, {})) {
      const std::uint64_t number = ++last;
      waiting[number] = std::move(start.failed);
      channel->send(Json::object({{"ask", "start"},
                                  {"id", number},
                                  {"host", start.host},
                                  {"join", elastic::to_json(with_own_addresses(start.order, announce))}})
                        .dump());
    }
  }

  // What cannot be read ends the connection: the next start makes another one.
  void hear(const std::string& frame) {
    std::uint64_t number = 0;
    std::string said;
    try {
      const Json answer = Json::parse(frame, "an answer of the cluster's head");
      if (!answer.find("id")) return;
      number = static_cast<std::uint64_t>(answer.at("id").as_integer());
      if (const Json* error = answer.find("error")) said = error->as_string();
    } catch (const DataError& error) {
      return lose(error.what());
    }
    MutexLock lock(mutex);
    auto node = waiting.extract(number);
    lock.unlock();
    if (!node.empty() && !said.empty()) node.mapped()(said);
  }

  void lose(const std::string& reason) {
    MutexLock lock(mutex);
    channel.reset();
    const auto lost = std::exchange(waiting, {});
    lock.unlock();
    for (const auto& [number, failed] : lost) failed("the cluster's head was lost: " + reason);
  }

  const AgentRegistry registry;
  const std::string announce;
  Mutex mutex;
  StoppableCondVar wake;
  std::vector<Start> queued DTRAIN_GUARDED_BY(mutex);  // not sent yet
  std::shared_ptr<net::Channel> channel DTRAIN_GUARDED_BY(mutex);
  std::map<std::uint64_t, Failed> waiting DTRAIN_GUARDED_BY(mutex);  // starts without an answer, by number
  std::uint64_t last DTRAIN_GUARDED_BY(mutex) = 0;
  net::LoopThread loop;
  std::jthread sender;  // last: joined before the loop stops, and both before the other members are destroyed
};

RegistryLauncher::RegistryLauncher(AgentRegistry registry, std::string announce)
    : state_(std::make_unique<State>(std::move(registry), std::move(announce))) {}
RegistryLauncher::~RegistryLauncher() = default;

void RegistryLauncher::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  state_->add({host.host, join, std::move(failed)});
}

}  // namespace dtrain::launcher
