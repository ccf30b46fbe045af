#include <dtrain/base/json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>

namespace dtrain {
namespace {

using Parsed = nlohmann::ordered_json;

constexpr std::size_t kDeepest = 200;

// Builds the document as the parser reads it. Members are appended, and those of the same name are joined at the end of
// their object, so that the time grows with the length of the text and not with its square.
class Builder {
 public:
  Builder(std::string_view source, std::span<const std::string_view> without) : source_(source), without_(without) {}
  Json take() { return std::move(root_); }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Parsed::number_integer_t value) { return add(Json(value)); }
  bool number_unsigned(Parsed::number_unsigned_t value) { return add(Json(value)); }
  bool number_float(Parsed::number_float_t value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Parsed::binary_t&) { return false; }  // not in texts
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool end_object() {
    if (skipped_ == 0) join_members(members_of(open_.back().value));
    return close();
  }
  bool key(std::string& name) {
    check_depth();
    if (skipped_ > 0) return true;
    const bool unwanted = std::find(without_.begin(), without_.end(), name) != without_.end();
    skips_next_ = unwanted;
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) {
    constexpr int kParseErrors = 100, kLastParseError = 199;
    if (error.id < kParseErrors || error.id > kLastParseError)
      throw DataError(fmt::format("{}: JSON with a number that is out of range", source_));
    throw DataError(fmt::format("{}: not valid JSON at byte {}", source_, byte));
  }

 private:
  struct Open {
    Json value;
    std::string key;  // names the value that comes next
  };

  static Json::Object& members_of(Json& object) { return const_cast<Json::Object&>(object.as_object()); }

  // Values are copied and destroyed recursively, so their depth must not be the author's to choose.
  void check_depth() const {
    if (open_.size() + skipped_ > kDeepest)
      throw DataError(fmt::format("{}: JSON nested more than {} levels deep", source_, kDeepest));
  }

  bool add(Json value) {
    check_depth();
    if (skipped_ > 0 || std::exchange(skips_next_, false)) return true;
    place(std::move(value));
    return true;
  }

  void place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& outer = open_.back(); outer.value.is_array()) {
      outer.value.push_back(std::move(value));
    } else {
      members_of(outer.value).emplace_back(std::move(outer.key), std::move(value));
    }
  }

  bool open(Json container) {
    check_depth();
    if (skipped_ > 0 || std::exchange(skips_next_, false)) {
      ++skipped_;
    } else {
      open_.push_back({std::move(container), {}});
    }
    return true;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    Json done = std::move(open_.back().value);
    open_.pop_back();
    place(std::move(done));
    return true;
  }

  // Where a name stands several times, the first member keeps its place and the last one gives the value.
  static void join_members(Json::Object& members) {
    std::unordered_map<std::string, std::size_t> places;
    std::size_t kept = 0;
    for (Json::Member& member : members) {
      const auto [place, is_new] = places.try_emplace(member.first, kept);
      Json::Member& target = members[place->second];
      if (&target != &member) {
        target.second = std::move(member.second);
        if (is_new) target.first = std::move(member.first);
      }
      kept += is_new ? 1 : 0;
    }
    members.resize(kept);
  }

  const std::string_view source_;
  const std::span<const std::string_view> without_;
  Json root_;
  std::vector<Open> open_;
  std::size_t skipped_ = 0;  // containers that are open inside a member that is left out
  bool skips_next_ = false;  // the value of such a member comes next
};

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
    // Appends to the vector below the map: the map would compare each key with all before it, and they differ already.
    std::vector<Parsed::object_t::value_type>& members = object.get_ref<Parsed::object_t&>();
    for (const auto& [key, member] : value.as_object()) members.emplace_back(key, to_parsed(member));
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
  Builder builder(source, without);
  Parsed::sax_parse(text, &builder);
  return builder.take();
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

std::string Json::find_text(std::string_view key, std::string_view otherwise) const {
  const Json* value = find(key);
  return value && value->is_string() ? value->as_string() : std::string(otherwise);
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
