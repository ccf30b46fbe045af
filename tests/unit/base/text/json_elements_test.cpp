#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_elements.hpp>

namespace dtrain {
namespace {

std::vector<std::string> elements(std::string_view text) {
  std::vector<std::string> found;
  for_each_element(text, "x.json", [&](std::string_view value) { found.emplace_back(value); });
  return found;
}

TEST(JsonElements, AreTheTextsOfAnArraysValues) {
  EXPECT_EQ(elements(R"( [1, "a]\",", {"b": [2, {}]} ,[ ],null ] )"),
            (std::vector<std::string>{"1", R"("a]\",")", R"({"b": [2, {}]})", "[ ]", "null"}));
  EXPECT_TRUE(elements("[ ]").empty());
}

TEST(JsonElements, AreTheTextsOfAnObjectsMembers) {
  std::map<std::string, std::string> found;
  for_each_member(R"({"a": {"x": "}"}, "b c":-1.5e3})", "x.json",
                  [&](std::string_view name, std::string_view value) { found.emplace(name, value); });
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"a", R"({"x": "}"})"}, {"b c", "-1.5e3"}}));
}

TEST(JsonElements, NamesTheByteOfAMistake) {
  for (const auto& [text, byte] :
       {std::pair{"[1, 2", "byte 6"}, std::pair{"[1 2]", "byte 4"}, std::pair{"[1,]", "byte 4"},
        std::pair{"{}", "byte 1"}, std::pair{"[] x", "byte 4"}, std::pair{"[\"a", "byte 4"},
        std::pair{"[{\"a\": 1", "byte 9"}, std::pair{"", "byte 1"}}) {
    try {
      elements(text);
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(byte), std::string::npos) << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace dtrain
