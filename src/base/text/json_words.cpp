#include <dtrain/base/json_words.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

std::string to_characters(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

std::string to_bytes(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (i + 1 < text.size() && first <= 0xc3) {
      const auto second = static_cast<unsigned char>(text[++i]);
      bytes += static_cast<char>((first & 0x03) << 6 | (second & 0x3f));
    } else {
      throw DataError("a word of a command line is damaged");
    }
  }
  return bytes;
}

}  // namespace

Json words_to_json(const std::vector<std::string>& words) {
  Json json = Json::array();
  for (const std::string& word : words) json.push_back(to_characters(word));
  return json;
}

std::vector<std::string> words_from_json(const Json& json) {
  std::vector<std::string> words;
  for (const Json& word : json.as_array()) words.push_back(to_bytes(word.as_string()));
  return words;
}

}  // namespace dtrain
