// A JSON value (RFC 8259). Objects keep the order in which keys were added, so documents read as they were written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dtrain {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(unsigned value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::uint64_t value) : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}

  static Json array(std::initializer_list<Json> items = {}) { return Json(Array(items)); }
  static Json object(std::initializer_list<Member> members = {});

  // Throws DataError naming `source` and the byte offset of the first mistake, or when values are nested more than
  // 200 levels deep.
  static Json parse(std::string_view text, std::string_view source);
  // One line; with indent >= 0 one member a line. Throws nothing: bad UTF-8 is replaced.
  std::string dump(int indent = -1) const;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // These throw DataError when the value is of another kind.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_number() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  // The member, or nullptr. at() throws DataError that names the missing key.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  // The text of a member; `otherwise` where there is no such member, or it is no text.
  std::string find_text(std::string_view key, std::string_view otherwise = {}) const;
  // Adds the member at the end, or replaces it; a null value becomes an object first.
  Json& operator[](std::string_view key);
  // Appends to an array; a null value becomes an array first.
  void push_back(Json value);

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// The array of the texts of a list or a set.
template <typename Texts>
Json json_texts(const Texts& texts) {
  return Json(Json::Array(texts.begin(), texts.end()));
}

}  // namespace dtrain
