#include "node_reader.hpp"

#include <fmt/format.h>

#include <limits>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {

NodeReader::NodeReader(const Json& json, std::size_t index) : json_(json), name_(fmt::format("node {}", index)) {
  if (!json.is_object()) refuse("is not an object");
  name_ = text("name");
}

void NodeReader::refuse(const std::string& what, std::string hint) const {
  throw DataError(fmt::format("{}: {}", name_, what), std::move(hint));
}

const Json* NodeReader::find(const char* key) {
  known_.push_back(key);
  return json_.find(key);
}

const std::string& NodeReader::text(const char* key) {
  const Json* value = find(key);
  if (!value) refuse(fmt::format("\"{}\" is missing", key));
  if (!value->is_string()) refuse(fmt::format("\"{}\" must be a string", key));
  return value->as_string();
}

std::vector<std::string> NodeReader::texts(const char* key, const Json& value) const {
  std::vector<std::string> all;
  if (!value.is_array()) refuse(fmt::format("\"{}\" must be a list of names", key));
  for (const Json& item : value.as_array()) {
    if (!item.is_string()) refuse(fmt::format("\"{}\" must be a list of names", key));
    all.push_back(item.as_string());
  }
  return all;
}

int NodeReader::integer(const char* key, const Json& value) const {
  const bool fits = value.is_integer() && std::in_range<int>(value.as_integer());
  if (!fits) refuse(fmt::format("\"{}\" must be a whole number", key));
  return static_cast<int>(value.as_integer());
}

void NodeReader::operator()(const char* key, int& value) {
  if (const Json* json = find(key)) value = integer(key, *json);
}

void NodeReader::operator()(const char* key, bool& value) {
  const Json* json = find(key);
  if (json && !json->is_bool()) refuse(fmt::format("\"{}\" must be true or false", key));
  if (json) value = json->as_bool();
}

float NodeReader::number(const char* key, const Json& value) const {
  constexpr double largest = std::numeric_limits<float>::max();
  const bool fits = value.is_number() && value.as_number() >= -largest && value.as_number() <= largest;
  if (!fits) refuse(fmt::format("\"{}\" must be a number", key));
  return static_cast<float>(value.as_number());
}

void NodeReader::operator()(const char* key, float& value) {
  if (const Json* json = find(key)) value = number(key, *json);
}

void NodeReader::list(const char* key, std::vector<float>& values) {
  const Json* json = find(key);
  if (!json) return;
  if (!json->is_array()) refuse(fmt::format("\"{}\" must be a list of numbers", key));
  values.clear();
  for (const Json& each : json->as_array()) values.push_back(number(key, each));
}

void NodeReader::pair(const char* key, int& h, int& w) {
  const Json* json = find(key);
  if (!json) return;
  if (json->is_array() && json->as_array().size() != 2) refuse(fmt::format("\"{}\" must be [h, w]", key));
  h = integer(key, json->is_array() ? json->as_array()[0] : *json);
  w = integer(key, json->is_array() ? json->as_array()[1] : *json);
}

std::size_t NodeReader::choice_index(const char* key, Names names) {
  const std::string& value = text(key);
  const auto index = index_of(names, value);
  if (!index) refuse(fmt::format("\"{}\" cannot be \"{}\"", key, value), advice(names, value));
  return *index;
}

void NodeReader::require_all_known() const {
  for (const auto& [key, value] : json_.as_object()) {
    if (!index_of(known_, key)) refuse(fmt::format("has no attribute \"{}\"", key), advice(known_, key));
  }
}

}  // namespace dtrain::nn
