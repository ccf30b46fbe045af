#include "link_option.hpp"

#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 3> kRates{{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}}};
constexpr std::array<Unit, 3> kTimes{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};

// "50us" in units of 1; nullopt: no number with one of the units.
std::optional<double> quantity(std::string_view text, const std::array<Unit, 3>& units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_number(text.substr(0, text.size() - unit.name.size()));
    if (number) return *number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

comm::LinkModel link_from(const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::string rate = text.substr(0, comma);
  if (comma == std::string::npos) {
    throw UsageError(fmt::format("'{}' has no latency: give bandwidth and latency, such as 10gbit,50us", text));
  }
  const std::string latency = text.substr(comma + 1);
  const auto bits = quantity(rate, kRates);
  if (!bits || !(*bits > 0)) {
    throw UsageError(
        fmt::format("'{}' is no bandwidth: give a number above 0 with kbit, mbit or gbit, such as 10gbit", rate));
  }
  const auto seconds = quantity(latency, kTimes);
  if (!seconds || !(*seconds >= 0)) {
    throw UsageError(fmt::format("'{}' is no latency: give a number with us, ms or s, such as 50us", latency));
  }
  return {.bytes_per_second = *bits / 8, .latency = *seconds};
}

std::string link_text(const comm::LinkModel& link) {
  return fmt::format("{:g}mbit,{:g}us", link.bytes_per_second * 8 / 1e6, link.latency * 1e6);
}

Option& add_link(OptionSet& set, std::string flags, std::optional<comm::LinkModel>& field, std::string help) {
  Option& option = set.add_custom(
      std::move(flags), "RATE,LATENCY", std::move(help), [&field](const std::string& text) { field = link_from(text); },
      [&field] { return field ? link_text(*field) : std::string(); });
  option.comma_list = true;
  return option;
}

}  // namespace dtrain::config
