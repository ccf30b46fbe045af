#include <dtrain/base/secret.hpp>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain {
std::string unpredictable_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::getrandom(bytes.data() + done, size - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(fmt::format("the kernel gives no random bytes: {}", std::strerror(errno)));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

}  // namespace dtrain
