#include <dtrain/cluster/tagged_prices.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/text.hpp>

#include "aws/resources.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kRoom = 256;  // characters of a tag

std::string tagged_text(const Fleet& fleet) {
  if (!fleet.group) return {};
  const auto found = fleet.group->tags.find(tag::kPrices);
  return found == fleet.group->tags.end() ? std::string() : found->second;
}

}  // namespace

std::string prices_text(const std::vector<std::string>& types, const PriceList& prices) {
  std::string text;
  std::set<std::string> done;
  for (const std::string& type : types) {
    const auto price = prices.of(type);
    if (!price || !done.insert(type).second) continue;
    const std::string word = fmt::format("{}{}={:.6g}", text.empty() ? "" : " ", type, *price);
    if (text.size() + word.size() > kRoom) break;
    text += word;
  }
  return text;
}

PriceList with_tagged_prices(const Fleet& fleet, PriceList prices) {
  for (const std::string& word : split(tagged_text(fleet), ' ')) {
    const auto parts = split(word, '=');
    const auto dollars = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
    if (dollars && *dollars > 0) prices.hourly[parts[0]] = *dollars;
  }
  return prices;
}

std::string prices_to_tag(const Fleet& fleet, std::vector<std::string> types, const PriceList& own) {
  for (const Node& node : fleet.nodes) types.push_back(node.type);
  PriceList known = with_tagged_prices(fleet, own);
  if (!own.published.empty()) {
    for (const auto& [type, dollars] : own.hourly) known.hourly[type] = dollars;
  }
  return prices_text(types, known);
}

void write_prices(net::AwsCalls& aws, const Fleet& fleet, const std::vector<std::string>& types, const PriceList& own) {
  const std::string text = prices_to_tag(fleet, types, own);
  if (!fleet.group || text.empty() || text == tagged_text(fleet)) return;
  set_tags(aws, {fleet.group->id}, {{tag::kPrices, text}});
}

}  // namespace dtrain::cluster
