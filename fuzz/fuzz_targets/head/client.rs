//! A client without manners, which reads along whatever is answered.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::idle;

/// Longer than every timeout of the gateway that a client can run into.
const LONGEST: Duration = Duration::from_secs(61);

pub struct Client {
    socket: TcpStream,
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub ended: bool,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).and_then(|()| socket.set_nonblocking(true)).expect("a socket");
        Self { socket, sent: Vec::new(), received: Vec::new(), ended: false }
    }

    /// Sends, to a gateway that may have had enough.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        match self.socket.write_all(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the socket's buffer is full"),
            _ => {}
        }
    }

    /// Takes what has come.
    pub fn take(&mut self) {
        let mut bytes = [0; 4096];
        while !self.ended {
            match self.socket.read(&mut bytes) {
                Ok(read @ 1..) => self.received.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A reset is an end as well.
                Ok(0) | Err(_) => self.ended = true,
            }
            idle::moved();
        }
    }

    /// Waits for what must hold soon, with some patience for a slow kernel.
    pub async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        for tries in 0..1_000 {
            idle::settle(|| self.take()).await;
            if holds(self) {
                return;
            }
            if tries > 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        panic!("waited in vain until {what}, and received {}", self.received.escape_ascii());
    }

    /// Sends no more, and reads to the end. Only then may time pass, if it is needed at all.
    pub async fn end(&mut self) {
        // Fails if the gateway has closed already.
        let _ = self.socket.shutdown(Shutdown::Write);
        idle::settle(|| self.take()).await;
        if !self.ended {
            tokio::time::advance(LONGEST).await;
            self.until("the gateway closes", |client| client.ended).await;
        }
    }
}
