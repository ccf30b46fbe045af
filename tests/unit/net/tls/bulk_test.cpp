#include "tls/bulk.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::net {
namespace {

constexpr std::uint64_t kManyRecords = 1 << 20;

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

GcmKey key_of(std::string_view bytes) { return GcmKey(bytes_of(bytes).first<kGcmKeySize>()); }

GcmNonce nonce_of(std::string_view bytes) {
  GcmNonce nonce;
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

iovec part_of(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

// Test case 4 of McGrew and Viega, The Galois/Counter Mode of Operation.
const std::string kText = from_hex(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba"
    "63"
    "7b39");
const std::string kAssociated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
const std::string kSealed = from_hex(
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d"
    "58"
    "e0915bc94fbc3221a5db94fae95ae7121a47");

class Gcm : public testing::Test {
 protected:
  GcmKey key_ = key_of(from_hex("feffe9928665731c6d6a8f9467308308"));
  const GcmNonce nonce_ = nonce_of(from_hex("cafebabefacedbaddecaf888"));
};

// The other implementation needs no provider.
TEST_F(Gcm, SaysWhatMayTakeItFromOpenSsl) {
  EVP_set_default_properties(nullptr, "provider=none");
  std::string hint = "OPENSSL_CONF";
  try {
    key_of(from_hex("feffe9928665731c6d6a8f9467308308"));
  } catch (const Error& error) {
    hint = error.hint();
  }
  EVP_set_default_properties(nullptr, "");
  EXPECT_NE(hint.find("OPENSSL_CONF"), std::string::npos) << hint;
}

TEST_F(Gcm, HasThePublishedResults) {
  std::string sealed(kSealed.size(), '\0');
  // In any parts.
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{33}, kText.size()}) {
    const std::array<iovec, 2> parts{part_of(std::string_view(kText).substr(0, cut)),
                                     part_of(std::string_view(kText).substr(cut))};
    key_.seal(nonce_, bytes_of(kAssociated), parts, reinterpret_cast<std::byte*>(sealed.data()));
    EXPECT_EQ(sealed, kSealed) << cut;
  }
  std::string text(kText.size(), '\0');
  EXPECT_TRUE(key_.open(nonce_, bytes_of(kAssociated), bytes_of(kSealed), reinterpret_cast<std::byte*>(text.data())));
  EXPECT_EQ(text, kText);
}

TEST_F(Gcm, NoticesAnyChange) {
  std::string text(kText.size(), '\0');
  const auto opens = [&](std::string sealed, const std::string& associated, const GcmNonce& nonce) {
    return key_.open(nonce, bytes_of(associated), bytes_of(sealed), reinterpret_cast<std::byte*>(text.data()));
  };
  for (std::size_t byte = 0; byte < kSealed.size(); ++byte) {
    std::string changed = kSealed;
    changed[byte] = static_cast<char>(changed[byte] ^ 0x10);
    EXPECT_FALSE(opens(changed, kAssociated, nonce_)) << byte;
  }
  EXPECT_FALSE(opens(kSealed, kAssociated + "x", nonce_));
  EXPECT_FALSE(opens(kSealed, kAssociated, nonce_of("another nonce")));
  EXPECT_TRUE(opens(kSealed, kAssociated, nonce_));
}

// Whatever implements GcmKey: peers may be built with another library.
TEST(GcmOfOpenSsl, OpensWhatGcmKeySeals) {
  const std::string key = "0123456789abcdef", nonce = "a nonce of 12", associated = "four";
  std::string text(100'003, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 255);
  std::string sealed(text.size() + kGcmTagSize, '\0'), opened(text.size(), '\0');
  const iovec part = part_of(text);
  key_of(key).seal(nonce_of(nonce), bytes_of(associated), {&part, 1}, reinterpret_cast<std::byte*>(sealed.data()));

  const auto* const bytes = reinterpret_cast<unsigned char*>(sealed.data());
  EVP_CIPHER_CTX* const cipher = EVP_CIPHER_CTX_new();
  int size = 0;
  EVP_DecryptInit_ex(cipher, EVP_aes_128_gcm(), nullptr, reinterpret_cast<const unsigned char*>(key.data()),
                     reinterpret_cast<const unsigned char*>(nonce.data()));
  EVP_DecryptUpdate(cipher, nullptr, &size, reinterpret_cast<const unsigned char*>(associated.data()), 4);
  EVP_DecryptUpdate(cipher, reinterpret_cast<unsigned char*>(opened.data()), &size, bytes,
                    static_cast<int>(text.size()));
  EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kGcmTagSize, sealed.data() + text.size());
  EXPECT_EQ(EVP_DecryptFinal_ex(cipher, reinterpret_cast<unsigned char*>(opened.data()) + size, &size), 1);
  EVP_CIPHER_CTX_free(cipher);
  EXPECT_TRUE(opened == text);
}

TEST(BulkKeys, NeverRepeatANonceUnderAKey) {
  BulkKeys keys("a secret", 4), same("a secret", 4);
  std::vector<std::string> seals;
  for (int record = 0; record < 12; ++record) {
    const iovec part = part_of("always the same");
    std::array<std::string, 2> sealed{std::string(15 + kGcmTagSize, '\0'), std::string(15 + kGcmTagSize, '\0')};
    std::array<BulkKeys*, 2> both{&keys, &same};
    for (std::size_t i = 0; i < 2; ++i) {
      auto [key, nonce] = both[i]->next();
      key.seal(nonce, {}, {&part, 1}, reinterpret_cast<std::byte*>(sealed[i].data()));
    }
    EXPECT_EQ(sealed[0], sealed[1]) << "both ends derive the same";
    for (const std::string& before : seals) EXPECT_NE(before, sealed[0]);
    seals.push_back(sealed[0]);
  }
}

struct Ends {
  FileDescriptor here, there;
  BulkRecords writer{BulkKeys("up", kManyRecords), BulkKeys("down", kManyRecords)};
  BulkRecords reader{BulkKeys("down", kManyRecords), BulkKeys("up", kManyRecords)};
  Ends() {
    std::array<int, 2> sockets{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    here = FileDescriptor(sockets[0]);
    there = FileDescriptor(sockets[1]);
  }
  // All of the text, whatever the sizes of the parts on either side; bytes that are read at once by each call.
  std::string carry(const std::string& text, std::size_t written, std::size_t read) {
    std::string got;
    std::size_t sent = 0;
    for (int idle = 0; got.size() < text.size() && idle < 10; ++idle) {
      std::vector<iovec> parts;
      for (std::size_t i = sent; i < text.size() && parts.size() < 8; i += written) {
        parts.push_back(part_of(std::string_view(text).substr(i, written)));
      }
      const Moved moved = parts.empty() ? writer.flush(here.get()) : writer.write(here.get(), parts);
      sent += moved.bytes;
      for (;;) {
        std::string room(read, '\0');
        const iovec part = part_of(room);
        const Moved came = reader.read(there.get(), {&part, 1});
        got.append(room, 0, came.bytes);
        if (came.bytes > 0) idle = 0;
        if (came.state != Moved::State::open) break;
      }
    }
    return got;
  }
};

TEST(BulkRecords, CarryAnyPartsIntoAnyRoom) {
  std::string text(700'001, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 13 + i / 251);
  for (const std::size_t written : {std::size_t{40}, std::size_t{9'000}, std::size_t{16'384}, std::size_t{300'000}}) {
    for (const std::size_t read : {std::size_t{100}, std::size_t{16'384}, std::size_t{500'000}}) {
      Ends ends;
      EXPECT_TRUE(ends.carry(text, written, read) == text) << written << " " << read;
      EXPECT_EQ(ends.writer.unsent(), 0u);
    }
  }
}

TEST(BulkRecords, OfAnImpossibleSizeAreRefused) {
  for (const std::uint32_t size : {0u, 16'385u, 0xffffffffu}) {
    Ends ends;
    ASSERT_EQ(::send(ends.here.get(), &size, sizeof size, 0), 4);
    char room = 0;
    const iovec part{&room, 1};
    const Moved moved = ends.reader.read(ends.there.get(), {&part, 1});
    EXPECT_EQ(moved.state, Moved::State::broken) << size;
    EXPECT_EQ(moved.error, "bytes were changed on the way");
  }
}

// Of two records of 100 bytes that come at once, the second one is changed in its first byte.
void expect_nothing_behind(std::size_t room_for) {
  Ends ends, twins;  // with the same keys
  const std::string text(100, 'a');
  const iovec part = part_of(text);
  for (int record = 0; record < 3; ++record) ends.writer.write(ends.here.get(), {&part, 1});
  std::string sealed(3 * (4 + text.size() + kGcmTagSize), '\0');
  ASSERT_EQ(::recv(ends.there.get(), sealed.data(), sealed.size(), MSG_WAITALL), std::ssize(sealed));
  sealed[sealed.size() / 3 + 4] ^= 1;
  ASSERT_EQ(::send(twins.here.get(), sealed.data(), sealed.size(), 0), std::ssize(sealed));
  std::string got;
  Moved moved;
  do {
    std::string room(room_for, '\0');
    const iovec into = part_of(room);
    moved = twins.reader.read(twins.there.get(), {&into, 1});
    got.append(room, 0, moved.bytes);
  } while (moved.bytes > 0);
  EXPECT_EQ(moved.state, Moved::State::broken) << room_for;
  EXPECT_EQ(moved.error, "bytes were changed on the way");
  EXPECT_TRUE(got == text) << room_for << " " << got.size();
}

TEST(BulkRecords, BehindAChangedOneAreNeverRead) {
  for (const std::size_t room : {std::size_t{30}, std::size_t{100}, std::size_t{140}, std::size_t{1'000}}) {
    expect_nothing_behind(room);
  }
}

TEST(BulkRecords, EndWithTheConnection) {
  Ends ends;
  const iovec part = part_of("half a record");
  ends.writer.write(ends.here.get(), {&part, 1});
  std::string text(13, '\0');
  const iovec room = part_of(text);
  EXPECT_EQ(ends.reader.read(ends.there.get(), {&room, 1}).bytes, 13u);
  ASSERT_EQ(::send(ends.here.get(), "\x0d\0\0\0half", 8, 0), 8);
  ends.here = FileDescriptor();
  EXPECT_EQ(ends.reader.read(ends.there.get(), {&room, 1}).state, Moved::State::ended);
}

}  // namespace
}  // namespace dtrain::net
