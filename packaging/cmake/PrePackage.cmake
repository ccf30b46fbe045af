# Run by CPack on the installed files before they become a package: what one kind of package wants otherwise than the rest.
file(GLOB roots ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
foreach(root ${roots})
  if(CPACK_GENERATOR STREQUAL DEB)
    file(MAKE_DIRECTORY ${root}/share/zsh/vendor-completions ${root}/share/lintian/overrides)
    file(RENAME ${root}/share/zsh/site-functions/_dtrain ${root}/share/zsh/vendor-completions/_dtrain)
    file(REMOVE_RECURSE ${root}/share/zsh/site-functions)
    file(COPY_FILE ${CPACK_DTRAIN_SOURCE}/packaging/lintian-overrides ${root}/share/lintian/overrides/dtrain)
    file(COPY_FILE ${CPACK_DTRAIN_BINARY}/packaging/changelog.Debian ${root}/share/doc/dtrain/changelog.Debian)
    file(CHMOD ${root}/share/lintian/overrides/dtrain ${root}/share/doc/dtrain/changelog.Debian
         PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
  file(GLOB plain ${root}/share/man/man*/dtrain*.[15] ${root}/share/doc/dtrain/changelog*)
  # Without a name and a time inside: the same bytes again.
  execute_process(COMMAND gzip -9nf ${plain} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
