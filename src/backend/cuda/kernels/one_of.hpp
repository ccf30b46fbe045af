// One value of a long list of types, as std::variant, for hundreds of types: each function of a variant carries the
// whole list in its name, and a visit makes one for each type, so that compiling it costs the square of the list. Here
// the list is a struct with a name, which stands for it. Types are trivially copyable; the first is what a OneOf begins
// with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dtrain::backend::cuda {

template <std::size_t index, typename Type>
struct Nth {
  using type = Type;
};

template <typename Indices, typename... Types>
struct Numbered;
template <std::size_t... indices, typename... Types>
struct Numbered<std::index_sequence<indices...>, Types...> : Nth<indices, Types>... {
  static constexpr std::size_t count = sizeof...(Types);
  static constexpr std::size_t bytes = std::max({sizeof(Types)...});
  static constexpr std::size_t alignment = std::max({alignof(Types)...});
};

// The types of several tuples, one after the other: struct List : TypesOf<std::tuple<...>, ...> {}.
template <typename... Tuples>
struct Joined;
template <typename... Types>
struct Joined<std::tuple<Types...>> {
  using types = Numbered<std::index_sequence_for<Types...>, Types...>;
};
template <typename... First, typename... Second, typename... More>
struct Joined<std::tuple<First...>, std::tuple<Second...>, More...> : Joined<std::tuple<First..., Second...>, More...> {
};
template <typename... Tuples>
using TypesOf = typename Joined<Tuples...>::types;

template <typename Type, std::size_t index>
constexpr std::size_t number_of(const Nth<index, Type>*) {
  return index;
}
template <std::size_t index, typename Type>
Nth<index, Type> nth(const Nth<index, Type>*);  // never called: its result names the type

template <typename Type, typename List>
concept IsOf = requires(const List* list) {
  number_of<Type>(list);
};

template <typename List>
class OneOf {
  template <std::size_t index>
  using TypeAt = typename decltype(nth<index>(static_cast<const List*>(nullptr)))::type;

 public:
  OneOf() : OneOf(TypeAt<0>{}) {}
  template <IsOf<List> Type>
  OneOf(const Type& value)
      : index_(number_of<Type>(static_cast<const List*>(nullptr))) {  // NOLINT(google-explicit-constructor)
    static_assert(std::is_trivially_copyable_v<Type>);
    std::memcpy(bytes_, &value, sizeof value);
  }

  // Null where the value is of another type.
  template <IsOf<List> Type>
  const Type* get_if() const {
    return holds<Type>() ? std::launder(reinterpret_cast<const Type*>(bytes_)) : nullptr;
  }
  template <IsOf<List> Type>
  bool holds() const {
    return index_ == number_of<Type>(static_cast<const List*>(nullptr));
  }

  std::size_t index() const { return index_; }  // of its type in the list

  // work(value), which returns the same type for each of them.
  template <typename Do>
  decltype(auto) visit(Do&& work) const {
    return dispatch<std::invoke_result_t<Do&, const TypeAt<0>&>>(work, std::make_index_sequence<List::count>{});
  }

 private:
  template <typename Result, typename Do, std::size_t... indices>
  Result dispatch(Do& work, std::index_sequence<indices...>) const {
    static constexpr Result (*kFunctions[])(Do&, const std::byte*) = {&call<Result, Do, indices>...};
    return kFunctions[index_](work, bytes_);
  }
  template <typename Result, typename Do, std::size_t index>
  static Result call(Do& work, const std::byte* value) {
    return work(*std::launder(reinterpret_cast<const TypeAt<index>*>(value)));
  }

  std::size_t index_;
  alignas(List::alignment) std::byte bytes_[List::bytes];
};

}  // namespace dtrain::backend::cuda
