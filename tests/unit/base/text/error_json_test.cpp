#include <gtest/gtest.h>

#include <dtrain/base/error_json.hpp>

namespace dtrain {
namespace {

template <typename Kind>
class ErrorToldTest : public testing::Test {};
using Kinds = testing::Types<Error, UsageError, DataError, RemoteError, PeerLost, Stopped>;
TYPED_TEST_SUITE(ErrorToldTest, Kinds);

TYPED_TEST(ErrorToldTest, IsTheSameAfterATripThroughText) {
  const TypeParam error("what, where", "what next");
  const Json told = Json::parse(error_to_json(error).dump(), "a test");
  try {
    throw_error(told);
  } catch (const Error& heard) {
    EXPECT_EQ(typeid(heard), typeid(TypeParam));
    EXPECT_STREQ(heard.what(), "what, where");
    EXPECT_EQ(heard.hint(), "what next");
  }
}

TEST(ErrorTold, OfAnUnknownKindIsStillAnError) {
  EXPECT_THROW(throw_error(Json::parse(R"({"kind": "new", "message": "m", "hint": ""})", "a test")), Error);
}

TEST(ErrorTold, WithoutAMessageIsRefused) {
  EXPECT_THROW(throw_error(Json::parse(R"({"kind": "usage"})", "a test")), DataError);
}

}  // namespace
}  // namespace dtrain
