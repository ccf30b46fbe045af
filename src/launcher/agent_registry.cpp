#include <dtrain/launcher/agent_registry.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::launcher {
namespace {

constexpr unsigned kOwnerOnly = 0600;
constexpr const char* kHint = "`dtrain cluster status` shows whether its head is there";

}  // namespace

std::optional<AgentRegistry> read_agent_registry(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Json json = Json::parse(read_file(file), file.string());
  AgentRegistry registry{.cluster = json.at("cluster").as_string(),
                         .address = json.at("address").as_string(),
                         .port = static_cast<std::uint16_t>(json.at("port").as_integer()),
                         .token = json.at("token").as_string()};
  if (const Json* folder = json.find("shared_folder")) registry.shared_folder = folder->as_string();
  if (const Json* adopted = json.find("adopted")) registry.adopted = adopted->as_bool();
  return registry;
}

void write_agent_registry(const Path& file, const AgentRegistry& registry) {
  const Json json = Json::object({{"schema", "dtrain.agent-registry/1"},
                                  {"cluster", registry.cluster},
                                  {"address", registry.address},
                                  {"port", std::int64_t{registry.port}},
                                  {"token", registry.token},
                                  {"shared_folder", registry.shared_folder},
                                  {"adopted", registry.adopted}});
  write_file_atomic(file, json.dump() + "\n", kOwnerOnly);
}

Json ask_registry(const AgentRegistry& registry, const Json& question, std::chrono::milliseconds deadline) {
  std::string answer;
  try {
    answer = net::ask_channel(registry.address, registry.port, registry.token, question.dump(), deadline);
  } catch (const RemoteError& error) {
    throw RemoteError(fmt::format("the head of cluster {}: {}", registry.cluster, error.what()), kHint);
  }
  Json reply = Json::parse(answer, "the answer of the cluster's head");
  if (const Json* error = reply.find("error")) throw RemoteError(error->as_string());
  return reply;
}

}  // namespace dtrain::launcher
