#include <dtrain/launcher/agent_registry.hpp>

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::launcher {
namespace {

constexpr unsigned kOwnerOnly = 0600;
constexpr const char* kHint = "`dtrain cluster status` shows whether its head is there";

// Waits for the first frame on a channel, or for its end. The loop's thread delivers it; wait() runs on the caller's.
class OneAnswer {
 public:
  void listen_to(net::Channel& channel) {
    channel.listen({.on_frame = [this](std::string frame) { take(std::move(frame), ""); },
                    .on_close = [this](const std::string& reason) { take("", reason); }});
  }

  std::optional<std::string> wait(std::chrono::milliseconds deadline) {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, deadline, [this]() DTRAIN_REQUIRES(mutex_) { return over_; });
    return frame_.empty() ? std::nullopt : std::optional(frame_);
  }

 private:
  void take(std::string frame, const std::string&) {
    const MutexLock lock(mutex_);
    if (over_) return;
    frame_ = std::move(frame);
    over_ = true;
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  std::string frame_ DTRAIN_GUARDED_BY(mutex_);
  bool over_ DTRAIN_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::optional<AgentRegistry> read_agent_registry(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Json json = Json::parse(read_file(file), file.string());
  return AgentRegistry{.cluster = json.at("cluster").as_string(),
                       .address = json.at("address").as_string(),
                       .port = static_cast<std::uint16_t>(json.at("port").as_integer()),
                       .token = json.at("token").as_string()};
}

void write_agent_registry(const Path& file, const AgentRegistry& registry) {
  const Json json = Json::object({{"schema", "dtrain.agent-registry/1"},
                                  {"cluster", registry.cluster},
                                  {"address", registry.address},
                                  {"port", std::int64_t{registry.port}},
                                  {"token", registry.token}});
  write_file_atomic(file, json.dump() + "\n", kOwnerOnly);
}

Json ask_registry(const AgentRegistry& registry, const Json& question, std::chrono::milliseconds deadline) {
  net::Loop loop;
  std::thread thread([&loop] { loop.run(); });
  std::optional<std::string> frame;
  OneAnswer answer;
  std::optional<RemoteError> failure;
  try {
    const auto channel = net::connect_channel(loop, registry.address, registry.port, registry.token, deadline);
    answer.listen_to(*channel);
    channel->send(question.dump());
    frame = answer.wait(deadline);
  } catch (const RemoteError& error) {
    failure = error;
  }
  loop.stop();
  thread.join();
  if (failure) throw RemoteError(fmt::format("the head of cluster {}: {}", registry.cluster, failure->what()), kHint);
  if (!frame) throw RemoteError(fmt::format("the head of cluster {} does not answer", registry.cluster), kHint);
  Json reply = Json::parse(*frame, "the answer of the cluster's head");
  if (const Json* error = reply.find("error")) throw RemoteError(error->as_string());
  return reply;
}

}  // namespace dtrain::launcher
