#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/sealed.hpp>

namespace dtrain {
namespace {

TEST(Sealed, OnlyTheOtherSideOpensIt) {
  const KeyHalf sender, receiver, listener;
  const std::string sealed = sender.seal("the token", receiver.public_part());
  EXPECT_EQ(receiver.open(sealed, sender.public_part()), "the token");
  EXPECT_THROW(listener.open(sealed, sender.public_part()), DataError);
  EXPECT_THROW(receiver.open(sealed, listener.public_part()), DataError);
  EXPECT_EQ(sealed.find("token"), std::string::npos);
}

TEST(Sealed, DamageIsNoticed) {
  const KeyHalf sender, receiver;
  std::string sealed = sender.seal("the token", receiver.public_part());
  sealed.back() = sealed.back() == '0' ? '1' : '0';
  EXPECT_THROW(receiver.open(sealed, sender.public_part()), DataError);
  EXPECT_THROW(receiver.open("", sender.public_part()), DataError);
  EXPECT_THROW(sender.seal("the token", "no key"), DataError);
}

}  // namespace
}  // namespace dtrain
