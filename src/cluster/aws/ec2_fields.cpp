#include "ec2_fields.hpp"

#include <fmt/format.h>

namespace dtrain::cluster {

Fields filtered(std::vector<std::pair<std::string, std::string>> filters) {
  Fields fields;
  int number = 0;
  for (auto& [name, value] : filters) {
    ++number;
    fields.emplace_back(fmt::format("Filter.{}.Name", number), std::move(name));
    fields.emplace_back(fmt::format("Filter.{}.Value.1", number), std::move(value));
  }
  return fields;
}

void add_list(Fields& fields, const std::string& name, const std::vector<std::string>& values) {
  int number = 0;
  for (const std::string& value : values) fields.emplace_back(fmt::format("{}.{}", name, ++number), value);
}

void add_tags(Fields& fields, const std::string& prefix, int number, const std::string& kind, const Tags& tags) {
  const std::string lead = fmt::format("{}TagSpecification.{}.", prefix, number);
  fields.emplace_back(lead + "ResourceType", kind);
  int tag = 0;
  for (const auto& [key, value] : tags) {
    ++tag;
    fields.emplace_back(fmt::format("{}Tag.{}.Key", lead, tag), key);
    fields.emplace_back(fmt::format("{}Tag.{}.Value", lead, tag), value);
  }
}

}  // namespace dtrain::cluster
