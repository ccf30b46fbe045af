#include <dtrain/launcher/registry_launcher.hpp>

#include <map>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::launcher {
namespace {

constexpr std::chrono::seconds kConnectDeadline{10};

}  // namespace

// One connection to the head serves all starts: made by the first start, and again after it was lost. start() may be
// called from any thread; the loop has a thread of its own, which calls `Failed` without holding `mutex`. If the
// connection is lost, every start that waits for an answer fails. The destructor stops the loop, so no `Failed` is
// called after it.
struct RegistryLauncher::State {
  State(AgentRegistry where, std::string announced)
      : registry(std::move(where)), announce(std::move(announced)), thread([this] { loop.run(); }) {}
  ~State() {
    loop.stop();
    thread.join();
  }

  void ask(const Json& question, std::uint64_t number, Failed failed) {
    const MutexLock lock(mutex);
    if (!channel) connect();
    waiting[number] = std::move(failed);
    channel->send(question.dump());
  }

  void connect() DTRAIN_REQUIRES(mutex) {
    channel = net::connect_channel(loop, registry.address, registry.port, registry.token, kConnectDeadline);
    channel->listen({.on_frame = [this](const std::string& frame) { hear(frame); },
                     .on_close = [this](const std::string& reason) { lose(reason); }});
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
  std::shared_ptr<net::Channel> channel DTRAIN_GUARDED_BY(mutex);
  std::map<std::uint64_t, Failed> waiting DTRAIN_GUARDED_BY(mutex);  // starts without an answer, by number
  std::uint64_t last DTRAIN_GUARDED_BY(mutex) = 0;
  net::Loop loop;
  std::thread thread;
};

RegistryLauncher::RegistryLauncher(AgentRegistry registry, std::string announce)
    : state_(std::make_unique<State>(std::move(registry), std::move(announce))) {}
RegistryLauncher::~RegistryLauncher() = default;

void RegistryLauncher::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  std::uint64_t number = 0;
  {
    const MutexLock lock(state_->mutex);
    number = ++state_->last;
  }
  const Json order = Json::object({{"ask", "start"},
                                   {"id", number},
                                   {"host", host.host},
                                   {"join", elastic::to_json(with_own_addresses(join, state_->announce))}});
  state_->ask(order, number, std::move(failed));
}

}  // namespace dtrain::launcher
