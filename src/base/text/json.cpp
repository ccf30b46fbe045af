#include <dtrain/base/json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>

namespace dtrain {
namespace {

using Parsed = nlohmann::ordered_json;

constexpr int kDeepest = 200;

Json from_parsed(const Parsed& value) {
  switch (value.type()) {
    case Parsed::value_t::boolean:
      return Json(value.get<bool>());
    case Parsed::value_t::number_integer:
      return Json(value.get<std::int64_t>());
    case Parsed::value_t::number_unsigned:
      return Json(value.get<std::uint64_t>());
    case Parsed::value_t::number_float:
      return Json(value.get<double>());
    case Parsed::value_t::string:
      return Json(value.get<std::string>());
    case Parsed::value_t::array: {
      Json::Array items;
      for (const Parsed& item : value) items.push_back(from_parsed(item));
      return Json(std::move(items));
    }
    case Parsed::value_t::object: {
      Json object = Json::object();
      for (const auto& [key, member] : value.items()) object[key] = from_parsed(member);
      return object;
    }
    default:
      return Json();
  }
}

Parsed to_parsed(const Json& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_integer();
  if (value.is_number()) return value.as_number();
  if (value.is_string()) return value.as_string();
  if (value.is_array()) {
    Parsed array = Parsed::array();
    for (const Json& item : value.as_array()) array.push_back(to_parsed(item));
    return array;
  }
  if (value.is_object()) {
    Parsed object = Parsed::object();
    for (const auto& [key, member] : value.as_object()) object[key] = to_parsed(member);
    return object;
  }
  return nullptr;
}

template <typename Kind>
const Kind& expect(const auto& value, const char* kind) {
  if (const auto* held = std::get_if<Kind>(&value)) return *held;
  throw DataError(fmt::format("JSON: expected {} here", kind));
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) {
  Json json;
  json.value_ = Object(members);
  return json;
}

Json Json::parse(std::string_view text, std::string_view source) { return parse_json_without(text, source, {}); }

Json parse_json_without(std::string_view text, std::string_view source, std::span<const std::string_view> without) {
  // Values are copied and destroyed recursively, so their depth must not be the author's to choose.
  const auto keeps = [&](int depth, Parsed::parse_event_t event, Parsed& value) {
    if (depth > kDeepest) throw DataError(fmt::format("{}: JSON nested more than {} levels deep", source, kDeepest));
    if (event != Parsed::parse_event_t::key || without.empty()) return true;
    return std::find(without.begin(), without.end(), value.get_ref<const std::string&>()) == without.end();
  };
  try {
    return from_parsed(Parsed::parse(text, keeps));
  } catch (const Parsed::parse_error& error) {
    throw DataError(fmt::format("{}: not valid JSON at byte {}", source, error.byte));
  } catch (const Parsed::exception&) {
    throw DataError(fmt::format("{}: JSON with a number that is out of range", source));
  }
}

std::string Json::dump(int indent) const {
  return to_parsed(*this).dump(indent, ' ', false, Parsed::error_handler_t::replace);
}

bool Json::as_bool() const { return expect<bool>(value_, "true or false"); }
std::int64_t Json::as_integer() const { return expect<std::int64_t>(value_, "an integer"); }
double Json::as_number() const {
  return is_integer() ? static_cast<double>(as_integer()) : expect<double>(value_, "a number");
}
const std::string& Json::as_string() const { return expect<std::string>(value_, "a string"); }
const Json::Array& Json::as_array() const { return expect<Array>(value_, "an array"); }
const Json::Object& Json::as_object() const { return expect<Object>(value_, "an object"); }

const Json* Json::find(std::string_view key) const {
  for (const Member& member : as_object()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find(key)) return *value;
  throw DataError(fmt::format("JSON: the key \"{}\" is missing", key));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  auto& members = const_cast<Object&>(as_object());
  for (Member& member : members) {
    if (member.first == key) return member.second;
  }
  return members.emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  const_cast<Array&>(as_array()).push_back(std::move(value));
}

}  // namespace dtrain
