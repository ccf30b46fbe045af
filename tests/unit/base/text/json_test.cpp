#include <gtest/gtest.h>

#include <ctime>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain {
namespace {

std::string mistake(std::string_view text) {
  try {
    Json::parse(text, "file.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, KeepsTheOrderOfKeysAndTheKindOfNumbers) {
  constexpr std::string_view text = R"({"z":1,"a":[true,null,"x\n",-2.5,9007199254740993],"m":{}})";
  EXPECT_EQ(Json::parse(text, "test").dump(), text);
}

TEST(Json, DoublesSurviveTheRoundTripBitForBit) {
  for (const double value : {0.1, 1.0 / 3, 2e-5, 1e300, -0.0, 5e-324}) {
    const double back = Json::parse(Json(value).dump(), "test").as_number();
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value)) << value;
  }
}

TEST(Json, TimeGrowsWithTheLengthOfAnObjectAndNotWithItsSquare) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  text += "}";
  const std::clock_t begin = std::clock();  // of this process, for the machine may be busy
  const Json json = Json::parse(text, "test");
  EXPECT_EQ(json.as_object().size(), 100'000u);
  EXPECT_EQ(json.dump(), text);
  EXPECT_LT(std::clock() - begin, std::clock_t{5} * CLOCKS_PER_SEC);
}

TEST(Json, OfSeveralMembersOfANameTheLastCountsInThePlaceOfTheFirst) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":{"a":3,"a":4},"c":5,"b":6})", "test").dump(),
            R"({"a":{"a":4},"b":6,"c":5})");
}

TEST(Json, NamesTheSourceAndTheByteOfAMistake) {
  EXPECT_EQ(mistake("{\"a\": 1,}"), "file.json: not valid JSON at byte 9");
  EXPECT_EQ(mistake(""), "file.json: not valid JSON at byte 1");
  EXPECT_NE(mistake("[1] 2"), "no error");
  EXPECT_NE(mistake("\"\xff\""), "no error");
}

TEST(Json, RefusesNestingThatWouldExhaustTheStack) {
  EXPECT_EQ(mistake(std::string(100, '[') + std::string(100, ']')), "no error");
  EXPECT_NE(mistake(std::string(1000000, '[')), "no error");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_NE(mistake(deep), "no error");
}

TEST(Json, RefusesNumbersThatNoDoubleHolds) { EXPECT_NE(mistake("[1e999]"), "no error"); }

TEST(Json, AccessOfTheWrongKindIsADataErrorThatNamesTheKey) {
  const Json json = Json::parse(R"({"a":"x"})", "test");
  EXPECT_THROW(json.at("a").as_integer(), DataError);
  EXPECT_THROW(json.as_array(), DataError);
  EXPECT_THROW(Json("x").find("a"), DataError);
  EXPECT_EQ(json.find("b"), nullptr);
  try {
    json.at("epoch");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("epoch"), std::string::npos);
  }
}

TEST(Json, GrowsFromNull) {
  Json json;
  json["list"].push_back(1);
  json["list"].push_back("two");
  json["list"] = json["list"];
  EXPECT_EQ(json.dump(), R"({"list":[1,"two"]})");
}

TEST(Json, BadUtf8IsReplacedOnWriting) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\""); }

TEST(Json, FindsATextOrSaysTheOther) {
  const Json json = Json::object({{"name", "demo"}, {"count", 3}});
  EXPECT_EQ(json.find_text("name"), "demo");
  EXPECT_EQ(json.find_text("count"), "");
  EXPECT_EQ(json.find_text("missing", "unknown"), "unknown");
}

TEST(Json, MakesAnArrayOfTexts) {
  EXPECT_EQ(json_texts(std::vector<std::string>{"b", "a"}).dump(), R"(["b","a"])");
  EXPECT_EQ(json_texts(std::set<std::string>{"b", "a"}).dump(), R"(["a","b"])");
  EXPECT_EQ(json_texts(std::vector<std::string>()).dump(), "[]");
}

}  // namespace
}  // namespace dtrain
