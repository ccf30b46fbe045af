#include "network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::train {
namespace {

// Calls visit(key, field) for each option that the text holds.
template <typename Network, typename Visit>
void each_option(Network& network, Visit visit) {
  visit("name", network.name);
  visit("num_layers", network.num_layers);
  visit("width", network.width);
  visit("batch_norm", network.batch_norm);
  visit("backbone", network.backbone);
  visit("proposals", network.proposals);
}

void take(const Json& value, std::string& field) { field = value.as_string(); }
void take(const Json& value, bool& field) { field = value.as_bool(); }
void take(const Json& value, int& field) {
  const std::int64_t number = value.as_integer();
  if (number < 0 || number > INT32_MAX) throw DataError(fmt::format("{} is out of range", number));
  field = static_cast<int>(number);
}

}  // namespace

std::string network_text(const nn::NetworkOptions& network) {
  Json json = Json::object();
  each_option(network, [&](const char* key, const auto& field) { json[key] = field; });
  return json.dump();
}

std::optional<nn::NetworkOptions> network_from_text(std::string_view text, std::string_view source) try {
  const Json json = Json::parse(text, "JSON");
  nn::NetworkOptions network;
  each_option(network, [&](const char* key, auto& field) { take(json.at(key), field); });
  const std::vector<std::string> known = nn::network_names();
  return std::ranges::find(known, network.name) == known.end() ? std::nullopt : std::optional(network);
} catch (const DataError& error) {
  throw DataError(fmt::format("{}: {}: {}", source, kNetworkOptions, error.what()), error.hint());
}

}  // namespace dtrain::train
