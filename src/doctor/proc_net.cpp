#include "proc_net.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <dtrain/base/text.hpp>

namespace dtrain::doctor {
namespace {

constexpr std::string_view kListening = "0A", kMapped = "::ffff:";
constexpr std::uint64_t kAccepts = 0x10000;  // __SO_ACCEPTCON
constexpr std::size_t kWord = 8;             // hexadecimal digits of 32 bits
constexpr std::size_t kTcpFields = 10, kUnixFields = 7;

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words = split(line, ' ');
  std::erase(words, "");
  return words;
}

// The kernel prints each 32 bits of an address as a number of this machine.
std::optional<std::string> address_of(std::string_view digits) {
  std::array<std::uint32_t, 4> words{};
  if (digits.size() != kWord && digits.size() != words.size() * kWord) return std::nullopt;
  for (std::size_t i = 0; i * kWord < digits.size(); ++i) {
    const auto word = number_of(digits.substr(i * kWord, kWord), 16);
    if (!word) return std::nullopt;
    words[i] = static_cast<std::uint32_t>(*word);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(digits.size() == kWord ? AF_INET : AF_INET6, words.data(), text.data(), text.size());
  const std::string_view address = text.data();
  const bool is_four = address.starts_with(kMapped) && address.find('.') != address.npos;
  return std::string(is_four ? address.substr(kMapped.size()) : address);
}

// "0100007F:1F90"
bool read_place(std::string_view text, std::string& address, std::uint16_t& port) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return false;
  const auto numeric = address_of(text.substr(0, colon));
  const auto number = number_of(text.substr(colon + 1), 16);
  if (!numeric || !number || *number > 0xffff) return false;
  address = *numeric;
  port = static_cast<std::uint16_t>(*number);
  return true;
}

}  // namespace

std::vector<TcpSocket> parse_tcp_table(std::string_view text) {
  std::vector<TcpSocket> sockets;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < kTcpFields) continue;
    TcpSocket socket;
    const auto inode = number_of(words[9], 10);
    if (!inode || !read_place(words[1], socket.address, socket.port) ||
        !read_place(words[2], socket.peer, socket.peer_port)) {
      continue;
    }
    socket.listens = words[3] == kListening;
    socket.inode = *inode;
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::vector<UnixListener> parse_unix_table(std::string_view text) {
  std::vector<UnixListener> listeners;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() <= kUnixFields) continue;
    const auto flags = number_of(words[3], 16), inode = number_of(words[6], 10);
    if (!flags || !inode || (*flags & kAccepts) == 0) continue;
    const std::vector<std::string> name(words.begin() + kUnixFields, words.end());
    listeners.push_back({.name = join(name, " "), .inode = *inode});
  }
  return listeners;
}

}  // namespace dtrain::doctor
