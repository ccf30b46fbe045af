#include "weights/metadata_names.hpp"

#include <gtest/gtest.h>

namespace dtrain::train {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::string& text, int classes = 3) { return names_in_metadata({{"names", text}}, classes); }

TEST(MetadataNames, AreReadInTheFormsThatProgramsWrite) {
  const Names expected = {"cat", "a 'big' dog", "owl, barn"};
  EXPECT_EQ(names_of(R"(["cat", "a 'big' dog", "owl, barn"])"), expected);
  EXPECT_EQ(names_of(R"({"0": "cat", "2": "owl, barn", "1": "a 'big' dog"})"), expected);
  EXPECT_EQ(names_of(R"({0: 'cat', 1: "a 'big' dog", 2: 'owl, barn'})"), expected);
  EXPECT_EQ(names_of(R"(['cat', 'a \'big\' dog', 'owl, barn'])"), expected);
  EXPECT_EQ(names_of(R"(('cat', "a 'big' dog", 'owl, barn',))"), expected);
  EXPECT_EQ(names_of(R"({'owl, barn': 2, 'cat': 0, "a 'big' dog": 1})"), expected);
  EXPECT_EQ(names_of("cat\na 'big' dog\r\nowl, barn\n"), expected);
  EXPECT_EQ(names_of("cat, dog,owl"), (Names{"cat", "dog", "owl"}));
}

TEST(MetadataNames, HaveTheCharactersThatPythonEscapes) {
  EXPECT_EQ(names_of(R"(['a\\b', "it\'s \"x\"", 'one\ttwo\nthree\r'])"),
            (Names{"a\\b", "it's \"x\"", "one\ttwo\nthree\r"}));
  EXPECT_EQ(names_of(R"(['caf\xe9', '\u732b', '\U0001f408\x20'])"),
            (Names{"caf\xc3\xa9", "\xe7\x8c\xab", "\xf0\x9f\x90\x88 "}));
  EXPECT_EQ(names_of(R"(['\ud83d', '\U00110000', '\x7f'])"), (Names{"\xef\xbf\xbd", "\xef\xbf\xbd", "\x7f"}));
  EXPECT_EQ(names_of(R"(['\d', '\xg1', '\u12'])"), (Names{"\\d", "\\xg1", "\\u12"}));  // Python refuses the last two
}

TEST(MetadataNames, MustNameEachClassOnce) {
  EXPECT_EQ(names_of("cat, dog", 3), Names{});
  EXPECT_EQ(names_of("{0: 'cat', 0: 'dog', 2: 'owl'}"), Names{});
  EXPECT_EQ(names_of("{0: 'cat', 1: 'dog', 3: 'owl'}"), Names{});
  EXPECT_EQ(names_of("['cat', 'dog', '']"), Names{});
  for (const char* damaged :
       {"", "[", "{0: 'cat", "['cat' 'dog' 'owl']", "{0, 'x'", "[[1], [2], [3]]", "[1e9, -1, {}]"})
    EXPECT_EQ(names_of(damaged), Names{}) << damaged;
}

TEST(MetadataNames, StandUnderTheKeysThatProgramsUse) {
  EXPECT_EQ(names_in_metadata({{"task", "classify"}, {"labels", "a\nb"}}, 2), (Names{"a", "b"}));
  EXPECT_EQ(names_in_metadata({{"names", "a\nb\nc"}, {"classes", "x,y"}}, 2), (Names{"x", "y"}));
  EXPECT_EQ(names_in_metadata({{"id2label", R"({"0": "x", "1": "y"})"}}, 2), (Names{"x", "y"}));
  EXPECT_EQ(names_in_metadata({}, 2), Names{});
}

}  // namespace
}  // namespace dtrain::train
