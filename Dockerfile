# The one image of every service: two static binaries, no shell, nobody's
# account but one without rights. deploy/build.sh puts together what is copied.
FROM scratch
COPY deploy/passwd /etc/passwd
COPY dist/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Empty folders of mode 0700 that belong to the account below: a new volume that
# is mounted on one takes over its owner and mode.
COPY --chown=65532:65532 dist/state/ /var/lib/assent/
COPY dist/assent dist/nats-server /usr/local/bin/
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/assent"]
CMD ["--help"]
